//! Who sends the requests of peers: what the connection and the headers say of it.

use std::net::IpAddr;
use std::sync::Arc;

use eureka_http_api::Class;
use eureka_replication::{NodeId, Sender};
use http::{HeaderMap, HeaderName, Method, Request};

use super::work::header;

/// The id that nodes of this kind send each other.
const NODE: HeaderName = HeaderName::from_static("x-eureka-node");
/// Where a Java server says it is.
const IDENTITY: HeaderName = HeaderName::from_static("discoveryidentity-id");
/// Marks a single request as replicated if it is exactly `true`.
const REPLICATION: HeaderName = HeaderName::from_static("x-netflix-discovery-replication");
/// A longer identity is not looked at.
const IDENTITY_BYTES_MAX: usize = 255;

/// Where the connection comes from on which a peer's request came, as far as that is known: in the extensions of requests of
/// peers, and only of those.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote(Option<IpAddr>);

/// Notes on a request where it comes from, if a peer sent it; the others, by far the most, pay for a look at them.
pub(super) fn note<B>(request: &mut Request<B>, address: Option<IpAddr>) {
    if is_of_peer(request) {
        let address = address.map(|address| address.to_canonical());
        request.extensions_mut().insert(Remote(address));
    }
}

/// Who sent a request, if a peer did, as [`note`] found.
pub(super) fn sender<B>(request: &Request<B>) -> Option<Sender> {
    let Remote(address) = *request.extensions().get()?;
    let headers = request.headers();
    let identity = text(headers, &IDENTITY).filter(|identity| identity.len() <= IDENTITY_BYTES_MAX);
    Some(Sender {
        node: text(headers, &NODE).and_then(NodeId::parse),
        address,
        identity: identity.map(Arc::from),
    })
}

/// Whether it is a batch, a repair, or a single request that is replicated.
fn is_of_peer<B>(request: &Request<B>) -> bool {
    // Batches and repairs are posted; what is replicated singly is mostly not.
    (request.method() == Method::POST && Class::of(request.method(), request.uri().path()) == Class::Peer)
        || text(request.headers(), &REPLICATION) == Some("true")
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    header(headers, name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&'static str, &'static str)]) -> Request<()> {
        let method = if path.contains("/apps/") { "PUT" } else { "POST" };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).expect("it is one");
        note(&mut request, Some([10, 0, 0, 7].into()));
        request
    }

    #[test]
    fn only_requests_of_peers_have_a_sender() {
        for path in ["/eureka/apps/A/i", "/api/v1/node", "/metrics"] {
            assert_eq!(sender(&request(path, &[])), None, "{path}");
            let said = [("x-netflix-discovery-replication", "True")];
            assert_eq!(sender(&request(path, &said)), None, "{path}");
        }
        for path in [
            "/eureka/peerreplication/batch/",
            "/eureka/v2/peerreplication/batch",
            "/api/v1/repair/compare",
        ] {
            assert!(sender(&request(path, &[])).is_some(), "{path}");
        }
    }

    #[test]
    fn a_sender_is_known_by_its_address_and_by_what_it_says() {
        let found = sender(&request(
            "/eureka/apps/A/i",
            &[
                ("x-netflix-discovery-replication", "true"),
                ("x-eureka-node", "0123456789abcdef0000000000000001"),
                ("discoveryidentity-id", "10.0.0.8"),
            ],
        ));
        assert_eq!(
            found,
            Some(Sender {
                node: Some(NodeId([0x0123_4567_89ab_cdef, 1])),
                address: Some([10, 0, 0, 7].into()),
                identity: Some("10.0.0.8".into()),
            })
        );
    }
}
