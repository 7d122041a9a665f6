//! Doubly linked lists of ids. Inserting an id, removing an id and taking the first id take
//! constant time.
//!
//! An id is in at most one of the lists that share the same [`Links`].

/// Value that stands for no id.
pub(super) const NONE: u32 = u32::MAX;

/// Previous and next id of each id.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

const ALONE: Link = Link {
    before: NONE,
    after: NONE,
};

impl Links {
    /// Returns the id after `id` in its list.
    pub(super) fn after(&self, id: u32) -> Option<u32> {
        let link = self.0.get(id as usize)?;
        (link.after != NONE).then_some(link.after)
    }

    /// Frees the memory of unused links.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    fn at(&mut self, id: u32) -> Option<&mut Link> {
        self.0.get_mut(id as usize)
    }
}

/// First and last id of one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

impl List {
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(super) fn push_back(&mut self, links: &mut Links, id: u32) {
        if links.0.len() <= id as usize {
            links.0.resize(id as usize + 1, ALONE);
        }
        if let Some(link) = links.at(id) {
            *link = Link {
                before: self.last,
                after: NONE,
            };
        }
        match links.at(self.last) {
            Some(last) => last.after = id,
            None => self.first = id,
        }
        self.last = id;
    }

    pub(super) fn remove(&mut self, links: &mut Links, id: u32) {
        let Some(link) = links.at(id) else { return };
        let Link { before, after } = std::mem::replace(link, ALONE);
        match links.at(before) {
            Some(before) => before.after = after,
            None => self.first = after,
        }
        match links.at(after) {
            Some(after) => after.before = before,
            None => self.last = before,
        }
    }

    /// Returns the ids of the list, first to last.
    pub(super) fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(self.first(), |id| links.after(*id))
    }
}
