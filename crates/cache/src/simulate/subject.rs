//! What is tested: an informer, as far as the model needs to see it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::ObjectKey;

use super::server::{Key, NAMESPACES, Object};
use crate::object::Codec;
use crate::reflector::InformerSink;
use crate::sink::Sink;
use crate::{AnyObject, DecodeError, Informer, Listener};

pub(super) struct Subject {
    informer: Informer,
}

impl Subject {
    pub(super) fn new(reflectors: usize) -> Self {
        Subject {
            informer: Informer::new(Codec::of::<ConfigMap>(), reflectors),
        }
    }

    pub(super) fn sink(&self, namespace: Option<String>) -> Box<dyn Sink> {
        Box::new(InformerSink::new(self.informer.clone(), namespace))
    }

    pub(super) fn listen(&self) -> Listener {
        self.informer.listen()
    }

    pub(super) fn is_synced(&self) -> bool {
        self.informer.is_synced()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.informer.last_error()
    }

    pub(super) fn observe(&self, object: &Object) {
        if let Ok(decoded) = self.informer.decode(object.json().as_bytes()) {
            self.informer.observe(decoded);
        }
    }

    pub(super) fn observe_deletion(&self, object: &Object) {
        let key = ObjectKey::from((object.key.namespace, object.key.name.as_str()));
        self.informer.observe_deletion(&key, &object.uid);
    }

    pub(super) fn get(&self, key: &Key) -> Option<Object> {
        let stored = ObjectKey::from((key.namespace, key.name.as_str()));
        match self.informer.get(&stored) {
            Ok(object) => object.as_ref().map(read),
            Err(error) => Some(unreadable(&error)),
        }
    }

    /// Everything, in the order of names.
    pub(super) fn contents(&self) -> Vec<Object> {
        let names = |namespace| (0..10).map(move |n| (namespace, format!("o{n}")));
        let keys = NAMESPACES.into_iter().flat_map(names);
        keys.filter_map(|(namespace, name)| self.get(&Key { namespace, name }))
            .collect()
    }
}

/// What an object in the store says.
pub(super) fn read(object: &AnyObject) -> Object {
    let meta = object.object_meta();
    Object {
        key: key(&ObjectKey::of(meta)),
        uid: meta.uid.clone().unwrap_or_default(),
        version: meta
            .resource_version
            .as_deref()
            .unwrap_or("0")
            .parse()
            .unwrap(),
        is_broken: false,
    }
}

/// What is known of an object that does not fit its type.
pub(super) fn unreadable(error: &Arc<DecodeError>) -> Object {
    Object {
        key: key(&error.key),
        uid: String::new(),
        version: 0,
        is_broken: true,
    }
}

pub(super) fn key(key: &ObjectKey) -> Key {
    let namespace = key.namespace.as_deref();
    let namespace = NAMESPACES.into_iter().find(|name| Some(*name) == namespace);
    Key {
        namespace: namespace.unwrap(),
        name: key.name.clone(),
    }
}
