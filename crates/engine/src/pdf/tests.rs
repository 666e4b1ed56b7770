use std::fs;

use hayro_syntax::Pdf;
use hayro_syntax::object::{Array, Dict};
use quipu_testkit::fixture;

use super::{PageRange, extract_pages};

fn twelve_pages() -> Vec<u8> {
    fs::read(fixture("pdf/twelve-pages.pdf")).unwrap()
}

fn pages_of(bytes: Vec<u8>, range: &str) -> Pdf {
    Pdf::new(extract_pages(bytes, Some(range.parse().unwrap())).unwrap().document).unwrap()
}

#[test]
fn ranges_are_one_page_or_the_first_and_the_last() {
    let parsed = |text: &str| text.parse::<PageRange>().map(|range| range.to_string());
    assert_eq!(parsed("3").unwrap(), "3");
    assert_eq!(parsed(" 2 - 21 ").unwrap(), "2-21");
    assert!(parsed("1-21").unwrap_err().contains("at most 20"));
    assert!(parsed("5-4").unwrap_err().contains("end before they begin"));
    for text in ["0", "-3", "3-", "1,2", "all", "1-2-3"] {
        assert!(parsed(text).unwrap_err().contains("is not a page"), "{text}");
    }
}

#[test]
fn the_new_document_has_the_pages_of_the_range_in_order() {
    let pdf = pages_of(twelve_pages(), "5-7");
    let texts: Vec<String> =
        pdf.pages().iter().map(|page| String::from_utf8_lossy(page.page_stream().unwrap()).into_owned()).collect();
    assert_eq!(texts.len(), 3);
    for (text, number) in texts.iter().zip(5..) {
        assert!(text.contains(&format!("(This is page {number}.)")) && text.contains("shared footer"), "{text}");
    }
}

#[test]
fn pages_keep_what_they_inherited() {
    let pdf = pages_of(twelve_pages(), "6-7");
    let pages: Vec<&Dict<'_>> = pdf.pages().iter().map(|page| page.raw()).collect();
    for page in &pages {
        let fonts = page.get::<Dict<'_>>("Resources").unwrap().get::<Dict<'_>>("Font").unwrap();
        assert!(fonts.contains_key("F1"));
        assert_eq!(page.get::<Array<'_>>("MediaBox").unwrap().iter::<i32>().collect::<Vec<_>>(), [0, 0, 300, 200]);
    }
    assert_eq!(pages.iter().map(|page| page.get::<i32>("Rotate")).collect::<Vec<_>>(), [None, Some(90)]);
}

#[test]
fn filled_fields_are_copied_and_other_pages_are_not() {
    let copied = extract_pages(twelve_pages(), Some("2-3".parse().unwrap())).unwrap().document;
    let text = String::from_utf8_lossy(&copied);
    assert!(text.contains("filled in: Ada"));
    // Page 2 links to page 9.
    assert!(text.contains("/Dest[ null/Fit]") && !text.contains("page 9"), "{text}");
    assert_eq!(text.matches("/Type/Page/").count() + text.matches("/Type/Page>>").count(), 2, "{text}");
    let pdf = Pdf::new(copied).unwrap();
    let field = pdf.pages()[1].raw().get::<Array<'_>>("Annots").unwrap().iter::<Dict<'_>>().next().unwrap();
    assert!(
        field.get::<Dict<'_>>("AP").is_some() && field.get_ref("P") == pdf.pages()[1].raw().obj_id().map(Into::into)
    );
}

#[test]
fn a_copy_of_a_copy_is_the_same() {
    let copy = |bytes: Vec<u8>| extract_pages(bytes, Some("1-3".parse().unwrap())).unwrap().document;
    // The first copy of a copy sorts the keys that were inherited.
    let second = copy(copy(twelve_pages()));
    assert!(copy(second.clone()) == second);
}

#[test]
fn what_cannot_be_copied_has_a_reason() {
    let error = |bytes: Vec<u8>, range: &str| extract_pages(bytes, Some(range.parse().unwrap())).unwrap_err();
    assert_eq!(error(twelve_pages(), "12-13"), "it has 12 pages, so there is no page 13");
    assert_eq!(error(b"%PDF-1.4 ...".to_vec(), "1"), "it is not a valid PDF file");
    assert_eq!(extract_pages(twelve_pages(), None).unwrap().page_count, 12);
}

#[test]
fn a_file_that_is_cut_anywhere_is_read_or_refused() {
    let whole = twelve_pages();
    for end in (0..whole.len()).step_by(61) {
        if let Ok(pages) = extract_pages(whole[..end].to_vec(), Some("1".parse().unwrap())) {
            assert!(Pdf::new(pages.document).is_ok(), "cut at {end}");
        }
    }
}
