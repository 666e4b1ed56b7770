//! Copies pages of a PDF to a new PDF, with everything they refer to.

use std::collections::HashMap;
use std::io::Write as _;
use std::ops::{Deref as _, Range};

use hayro_syntax::Pdf;
use hayro_syntax::object::{Dict, MaybeRef, Object, ObjectIdentifier};

/// Attributes that a page may inherit from the nodes above it.
const INHERITED_KEYS: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];
/// Keys of a page that are not copied: its place in the old document, and what is not shown.
const LEFT_OUT_KEYS: [&[u8]; 6] = [b"Parent", b"B", b"Metadata", b"PieceInfo", b"Thumb", b"AA"];
/// Maximum depth of the page tree when attributes are looked up.
const MAX_TREE_DEPTH: usize = 64;
const CATALOG: u32 = 1;
const PAGE_TREE: u32 = 2;

/// A PDF that contains the pages in `range`, counted from 0. `None` if it gets longer than
/// `max_bytes`. References to other pages become `null`, so that they are not copied.
pub(super) fn copy_pages(pdf: &Pdf, range: Range<usize>, max_bytes: usize) -> Option<Vec<u8>> {
    let pages = pdf.pages();
    let other_pages = pages.iter().filter_map(|page| Some((page.raw().obj_id()?, None)));
    let mut copy = PageCopy {
        out: b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec(),
        offsets: HashMap::new(),
        next_number: PAGE_TREE + 1,
        numbers: other_pages.collect(),
        pending: Vec::new(),
    };
    let copied: Vec<(u32, &Dict<'_>)> = pages.get(range)?.iter().map(|page| (copy.new_number(), page.raw())).collect();
    for (number, page) in &copied {
        page.obj_id().map(|id| copy.numbers.insert(id, Some(*number)));
    }
    copy.write_catalog(pdf, &copied);
    copied.iter().for_each(|(number, page)| copy.write_page(*number, page));
    while let Some((id, number)) = copy.pending.pop() {
        let object = pdf.xref().get::<Object<'_>>(id);
        copy.begin(number);
        object.iter().for_each(|object| copy.write_object(object));
        copy.end(object.is_none());
        if copy.out.len() > max_bytes {
            return None;
        }
    }
    copy.write_trailer();
    Some(copy.out).filter(|out| out.len() <= max_bytes)
}

/// A PDF that is being written.
struct PageCopy {
    out: Vec<u8>,
    /// Position of each object in `out`, by its number.
    offsets: HashMap<u32, usize>,
    next_number: u32,
    /// New number of each object of the old document that was referred to; `None` for pages that
    /// are not copied.
    numbers: HashMap<ObjectIdentifier, Option<u32>>,
    /// Objects that were referred to and are not yet written.
    pending: Vec<(ObjectIdentifier, u32)>,
}

impl PageCopy {
    fn new_number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number - 1
    }

    fn begin(&mut self, number: u32) {
        self.offsets.insert(number, self.out.len());
        self.push(&format!("{number} 0 obj\n"));
    }

    fn end(&mut self, is_null: bool) {
        self.push(if is_null { "null\nendobj\n" } else { "\nendobj\n" });
    }

    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Writes the catalog and the page tree. Forms and layers are described in the catalog.
    fn write_catalog(&mut self, pdf: &Pdf, pages: &[(u32, &Dict<'_>)]) {
        let catalog = pdf.xref().get::<Dict<'_>>(pdf.xref().root_id());
        self.begin(CATALOG);
        self.push(&format!("<</Type/Catalog/Pages {PAGE_TREE} 0 R"));
        for key in ["AcroForm", "OCProperties"] {
            if let Some(value) = catalog.as_ref().and_then(|catalog| catalog.get_raw::<Object<'_>>(key)) {
                self.push(&format!("/{key} "));
                self.write_value(&value);
            }
        }
        self.push(">>");
        self.end(false);
        let kids: String = pages.iter().map(|(number, _)| format!("{number} 0 R ")).collect();
        self.begin(PAGE_TREE);
        self.push(&format!("<</Type/Pages/Count {}/Kids[{kids}]>>", pages.len()));
        self.end(false);
    }

    fn write_page(&mut self, number: u32, page: &Dict<'_>) {
        self.begin(number);
        self.push(&format!("<</Parent {PAGE_TREE} 0 R"));
        self.write_entries(page, &LEFT_OUT_KEYS);
        for key in INHERITED_KEYS.into_iter().filter(|key| !page.contains_key(key)) {
            let nodes = std::iter::successors(parent(page), parent).take(MAX_TREE_DEPTH);
            if let Some(value) = nodes.into_iter().find_map(|node| node.get_raw::<Object<'_>>(key)) {
                self.write_name(key);
                self.write_value(&value);
            }
        }
        self.push(">>");
        self.end(false);
    }

    fn write_entries(&mut self, dict: &Dict<'_>, left_out: &[&[u8]]) {
        for (key, value) in dict.entries().filter(|(key, _)| !left_out.contains(&key.deref())) {
            self.write_name(&key);
            self.write_value(&value);
        }
    }

    fn write_value(&mut self, value: &MaybeRef<Object<'_>>) {
        let id = match value {
            MaybeRef::NotRef(object) => return self.write_object(object),
            MaybeRef::Ref(reference) => ObjectIdentifier::from(*reference),
        };
        let number = self.numbers.get(&id).copied().unwrap_or_else(|| {
            let number = self.new_number();
            self.numbers.insert(id, Some(number));
            self.pending.push((id, number));
            Some(number)
        });
        match number {
            Some(number) => self.push(&format!(" {number} 0 R")),
            None => self.push(" null"),
        }
    }

    fn write_object(&mut self, object: &Object<'_>) {
        match object {
            Object::Null(_) => self.push(" null"),
            Object::Boolean(value) => self.push(&format!(" {value}")),
            Object::Number(value) => self.push(&format!(" {}", value.as_f64())),
            Object::String(value) => {
                let digits: String = value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                self.push(&format!("<{digits}>"));
            }
            Object::Name(value) => self.write_name(value),
            Object::Array(value) => {
                self.push("[");
                value.raw_iter().for_each(|item| self.write_value(&item));
                self.push("]");
            }
            Object::Dict(value) => {
                self.push("<<");
                self.write_entries(value, &[b"XFA"]);
                self.push(">>");
            }
            Object::Stream(value) => {
                // Encrypted data was decrypted; other filters stay.
                let data = value.raw_data();
                self.push(&format!("<</Length {}", data.len()));
                self.write_entries(value.dict(), &[b"Length", b"Metadata", b"PieceInfo"]);
                self.push(">>\nstream\n");
                self.out.extend_from_slice(&data);
                self.push("\nendstream");
            }
        }
    }

    fn write_name(&mut self, name: &[u8]) {
        self.push("/");
        for byte in name {
            match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'+' => self.out.push(*byte),
                _ => self.push(&format!("#{byte:02X}")),
            }
        }
    }

    fn write_trailer(&mut self) {
        let start = self.out.len();
        let count = self.next_number;
        let mut table = format!("xref\n0 {count}\n0000000000 65535 f \n").into_bytes();
        for number in 1..count {
            let offset = self.offsets.get(&number).copied().unwrap_or_default();
            // Writing to memory does not fail.
            let _ = writeln!(table, "{offset:010} 00000 n ");
        }
        self.out.append(&mut table);
        self.push(&format!("trailer\n<</Size {count}/Root {CATALOG} 0 R>>\nstartxref\n{start}\n%%EOF\n"));
    }
}

/// The node above a page or node of the page tree; `None` for the root.
fn parent<'a>(node: &Dict<'a>) -> Option<Dict<'a>> {
    node.get::<Dict<'a>>(b"Parent")
}
