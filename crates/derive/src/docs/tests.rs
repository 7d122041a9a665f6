use quote::quote;
use syn::{ItemStruct, parse_quote};

use super::*;

#[test]
fn a_heading_is_part_of_the_description() {
    let mut item: ItemStruct = parse_quote!(
        /// # The size
        ///
        /// In cm.
        #[derive(Clone)]
        struct Size(u32);
    );
    keep_heading(&mut item.attrs);
    let expected = quote!(#[schemars(title = "", description = "# The size\n\nIn cm.")]);
    let last = item.attrs.last().map(ToTokens::to_token_stream);
    assert_eq!(last.unwrap().to_string(), expected.to_string());
}

#[test]
fn other_docs_stay_as_they_are() {
    let mut item: ItemStruct = parse_quote!(
        /// The size: # of parts.
        struct Size(u32);
    );
    keep_heading(&mut item.attrs);
    assert_eq!(item.attrs.len(), 1);
}
