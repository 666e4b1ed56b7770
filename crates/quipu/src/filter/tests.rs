use quipu_transcript::find::project_folder_name;

use super::*;

fn in_project(text: &str, folder: &str, cwd: Option<&str>) -> bool {
    ProjectFilter::new(text).unwrap().matches(folder, cwd)
}

#[test]
fn a_project_is_found_by_part_of_its_path_or_folder_name() {
    let cwd = Some("/home/sam/My_App.v2");
    for text in ["my_app", "sam/My_App.v2", "/home/sam", "-sam-My-App"] {
        assert!(in_project(text, "-home-sam-My-App-v2", cwd), "{text}");
    }
    assert!(in_project("抽奖", "-home-sam---", Some("/home/sam/抽奖")));
    assert!(!in_project("tidepool", "-home-sam-My-App-v2", cwd));
    assert!(in_project("my-app", "-home-sam-My-App-v2", None));
}

#[test]
fn a_dot_is_this_folder_and_those_below_it() {
    let here = std::env::current_dir().unwrap();
    let below = here.join("crates");
    let beside = format!("{}-other", here.display());
    assert!(in_project(".", "-x", here.to_str()));
    assert!(in_project(".", "-x", below.to_str()));
    assert!(!in_project(".", "-x", Some(&beside)));
    assert!(in_project("..", "-x", here.to_str()));
    assert!(in_project(".", &project_folder_name(&here.to_string_lossy()), None));
}

#[test]
fn sessions_with_the_same_id_are_distinguished() {
    let filter = Filter { session: Some(session_key(Path::new("/x/projects/-a/id.jsonl"))), ..Filter::default() };
    assert!(filter.matches_session("-a", "id", || None));
    assert!(!filter.matches_session("-b", "id", || None));
}
