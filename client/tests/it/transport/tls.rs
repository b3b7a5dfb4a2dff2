//! Servers that speak TLS, and whether they are whom they claim to be.

use eureka_client::{Tls, TlsError};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::*;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: rcgen::Certificate,
}

struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            root,
        }
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued { certificate, key }
    }

    fn pem(&self) -> Vec<u8> {
        self.root.pem().into_bytes()
    }
}

/// Answers 200 to one request a connection.
struct Secured {
    port: u16,
    task: JoinHandle<()>,
}

impl Secured {
    /// With a certificate for this name; `clients`: whose certificates it demands.
    async fn start(authority: &Authority, name: &str, clients: Option<&Authority>) -> Self {
        let issued = authority.issue(name, ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match clients {
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.root.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
            None => config.with_no_client_auth(),
        };
        let key = PrivateKeyDer::Pkcs8(issued.key.serialize_der().into());
        let chain = vec![issued.certificate.der().clone()];
        let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let accepting = acceptor.accept(stream);
                connections.spawn(async move {
                    let Ok(mut stream) = accepting.await else { return };
                    if scripted::read(&mut stream).await.is_some() {
                        let answer = with("200", "", "");
                        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &answer).await;
                        let _ = tokio::io::AsyncWriteExt::shutdown(&mut stream).await;
                    }
                });
            }
        });
        Self { port, task }
    }

    async fn ask(&self, tls: Tls, host: &str) -> Answer {
        let mut config = PoolConfig::default();
        config.tls = tls;
        let url = format!("https://name:secret@{host}:{}/eureka/", self.port);
        let server = Server::parse(&url).unwrap();
        Pool::new(config).send(&request(server, renew())).await
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn trusting(authority: &Authority) -> Tls {
    Tls::without_system_roots().trusting(&authority.pem()).unwrap()
}

fn refused(answer: Answer) {
    let Answer::Unreachable(why) = answer else {
        panic!("{answer:?}")
    };
    assert!(why.contains("TLS") && !why.contains("secret"), "{why}");
}

#[tokio::test]
async fn only_who_is_vouched_for_is_asked() {
    let (ours, other) = (Authority::new(), Authority::new());
    let server = Secured::start(&ours, "127.0.0.1", None).await;
    assert_eq!(server.ask(trusting(&ours), "127.0.0.1").await, Answer::Done);
    let both = trusting(&other).trusting(&ours.pem()).unwrap();
    assert_eq!(server.ask(both, "127.0.0.1").await, Answer::Done);
    refused(server.ask(trusting(&other), "127.0.0.1").await);
    refused(server.ask(Tls::without_system_roots(), "127.0.0.1").await);
}

#[tokio::test]
async fn a_certificate_is_for_a_name() {
    let ours = Authority::new();
    let server = Secured::start(&ours, "localhost", None).await;
    assert_eq!(server.ask(trusting(&ours), "localhost").await, Answer::Done);
    refused(server.ask(trusting(&ours), "127.0.0.1").await);
}

#[tokio::test]
async fn the_client_shows_its_certificate_where_one_is_demanded() {
    let (ours, clients) = (Authority::new(), Authority::new());
    let server = Secured::start(&ours, "127.0.0.1", Some(&clients)).await;
    let shown = clients.issue("client", ExtendedKeyUsagePurpose::ClientAuth);
    let tls = trusting(&ours)
        .showing(
            shown.certificate.pem().as_bytes(),
            shown.key.serialize_pem().as_bytes(),
        )
        .unwrap();
    assert_eq!(server.ask(tls, "127.0.0.1").await, Answer::Done);
    let nothing = server.ask(trusting(&ours), "127.0.0.1").await;
    assert!(matches!(nothing, Answer::Unreachable(_)), "{nothing:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_told_from_one_with_it() {
    let server = Scripted::start(|_, _| Reply::Close(with("400", "", ""))).await;
    let url = format!("https://name:secret@{}/", server.address());
    let mut config = PoolConfig::default();
    config.tls = Tls::without_system_roots()
        .trusting(&Authority::new().pem())
        .unwrap();
    config.connect_timeout = Duration::from_millis(300);
    let why = Pool::new(config)
        .send(&request(Server::parse(&url).unwrap(), renew()))
        .await;
    assert!(
        matches!(&why, Answer::Unreachable(why) if !why.contains("secret")),
        "{why:?}"
    );
}

#[test]
fn what_is_no_certificate() {
    let ours = Authority::new();
    let (one, two) = (
        ours.issue("a", ExtendedKeyUsagePurpose::ClientAuth),
        ours.issue("a", ExtendedKeyUsagePurpose::ClientAuth),
    );
    let key = one.key.serialize_pem();
    assert_eq!(Tls::system().trusting(b"").unwrap_err(), TlsError::Pem);
    assert_eq!(Tls::system().trusting(key.as_bytes()).unwrap_err(), TlsError::Pem);
    let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(Tls::system().trusting(broken), Err(TlsError::Root(_))));
    let chain = one.certificate.pem();
    assert_eq!(
        Tls::system().showing(chain.as_bytes(), b"").unwrap_err(),
        TlsError::Pem
    );
    let other = two.key.serialize_pem();
    let error = Tls::system()
        .showing(chain.as_bytes(), other.as_bytes())
        .unwrap_err();
    assert!(matches!(error, TlsError::Key(_)), "{error:?}");
    assert!(!format!("{:?}", Tls::system().showing(chain.as_bytes(), key.as_bytes())).contains("PRIVATE"));
}
