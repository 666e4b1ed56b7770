use super::*;

fn sample() -> Table {
    let columns = [
        Column::text("id"),
        Column::text("last").drop_rank(1),
        Column::number("turns").drop_rank(2),
        Column::text("title").flexible(10),
    ];
    let mut table = Table::new(columns);
    let row = |cells: [&str; 4]| cells.map(str::to_owned);
    table.push_row(row(["a1", "2026-11-15", "3", "A smooth tide curve"]));
    table.push_row(row(["b2", "2026-11-14", "1200", "年会抽奖脚本\nfor all"]));
    table
}

#[track_caller]
fn check(columns: Option<usize>, expect: &str) {
    let mut output = Output::plain();
    output.columns = columns;
    let text = sample().render(&output);
    assert_eq!(text, expect);
    if let Some(columns) = columns {
        assert!(text.lines().all(|line| line.width() <= columns), "{text}");
    }
}

#[test]
fn in_a_pipe_nothing_is_cut() {
    check(
        None,
        "id  last        turns  title\na1  2026-11-15      3  A smooth tide curve\nb2  2026-11-14   1200  年会抽奖脚本 for all\n",
    );
}

#[test]
fn the_flexible_column_is_cut_before_others_are_dropped() {
    check(
        Some(35),
        "id  last        turns  title\na1  2026-11-15      3  A smooth ti…\nb2  2026-11-14   1200  年会抽奖脚…\n",
    );
}

#[test]
fn columns_are_dropped_by_rank_when_it_is_narrow() {
    check(Some(30), "id  last        title\na1  2026-11-15  A smooth tide…\nb2  2026-11-14  年会抽奖脚本…\n");
    check(Some(20), "id  title\na1  A smooth tide c…\nb2  年会抽奖脚本 fo…\n");
}

#[test]
fn wide_characters_are_cut_by_the_cells_they_take() {
    assert_eq!(truncate("年会抽奖", 8), "年会抽奖");
    assert_eq!(truncate("年会抽奖", 7), "年会抽…");
    assert_eq!(truncate("年会抽奖", 6), "年会…");
    assert_eq!(truncate("abc", 0), "");
}
