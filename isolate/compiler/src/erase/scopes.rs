//! An index for frequent questions about scopes, so that none needs a walk.

use std::collections::{HashMap, HashSet};

use oxc_semantic::{ScopeId, Scoping};

/// The scopes of a module in text order. The scopes inside a scope follow it without a gap.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// For each scope, the number of the next scope outside it.
    ends: Vec<usize>,
    /// The scopes that bind a name, in order.
    bound: HashMap<String, Vec<usize>>,
    /// All names of the module, and the generated ones.
    taken: HashSet<String>,
    /// The last number that was tried as a suffix of a name.
    numbers: HashMap<String, u32>,
}

impl Scopes {
    pub(super) fn of(scoping: &Scoping) -> Self {
        let mut ends: Vec<usize> = (1..=scoping.scopes_len()).collect();
        let scopes: Vec<ScopeId> = scoping.scope_descendants_from_root().collect();
        for scope in scopes.into_iter().rev() {
            let end = ends.get(scope.index()).copied().unwrap_or_default();
            if let Some(parent) =
                scoping.scope_parent_id(scope).and_then(|parent| ends.get_mut(parent.index()))
            {
                *parent = end.max(*parent);
            }
        }
        let mut scopes = Self { ends, ..Self::default() };
        for (scope, bindings) in scoping.iter_bindings() {
            for name in bindings.keys() {
                scopes.bound.entry(name.to_string()).or_default().push(scope.index());
            }
        }
        scopes.taken.extend(scoping.symbol_names().map(str::to_owned));
        scopes.taken.extend(scoping.root_unresolved_references().keys().map(|name| name.to_string()));
        scopes
    }

    /// Whether `inner` is `outer` or inside it.
    pub(super) fn is_within(&self, inner: ScopeId, outer: ScopeId) -> bool {
        let end = self.ends.get(outer.index()).copied().unwrap_or_default();
        (outer.index()..end).contains(&inner.index())
    }

    /// A name that is not shadowed in `scope` or inside it: `name` itself or an unused one.
    pub(super) fn visible_name(&mut self, name: &str, scope: ScopeId, except: Option<ScopeId>) -> String {
        let end = self.ends.get(scope.index()).copied().unwrap_or_default();
        let bound = self.bound.get(name).map(Vec::as_slice).unwrap_or_default();
        let from = bound.partition_point(|bound| *bound < scope.index());
        let hidden = bound
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take(2)
            .any(|bound| *bound < end && Some(*bound) != except.map(ScopeId::index));
        if !hidden {
            return name.to_owned();
        }
        let number = self.numbers.entry(name.to_owned()).or_default();
        loop {
            *number += 1;
            let candidate = format!("{name}_{number}");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}
