//! Which certificates are trusted, and which one is shown.
//!
//! The system's roots are read from its own files (`SSL_CERT_FILE` and `SSL_CERT_DIR` win), at the first connection: on a
//! server that is all a platform's own verifier would do, too, and what a container needs is a file. Revocation is not
//! checked. The cryptography is ring's, which builds without cmake.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How servers prove who they are, and this client to them.
#[derive(Clone)]
pub struct Tls {
    system: bool,
    own: RootCertStore,
    shown: Option<Arc<SingleCertAndKey>>,
}

/// Why a certificate or a key is of no use.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TlsError {
    /// It is no PEM, or there is nothing of the kind in it.
    Pem,
    /// A root certificate that cannot be one.
    Root(String),
    /// A key that cannot be used, or is of another certificate.
    Key(String),
}

impl Tls {
    /// Trusts whom the system trusts; shows no certificate.
    pub fn system() -> Self {
        Self {
            system: true,
            own: RootCertStore::empty(),
            shown: None,
        }
    }

    /// Trusts nobody yet.
    pub fn without_system_roots() -> Self {
        Self {
            system: false,
            ..Self::system()
        }
    }

    /// Trusts these roots, too: one or more certificates in PEM.
    pub fn trusting(mut self, pem: &[u8]) -> Result<Self, TlsError> {
        for root in certificates(pem)? {
            self.own
                .add(root)
                .map_err(|error| TlsError::Root(error.to_string()))?;
        }
        Ok(self)
    }

    /// Shows this certificate where a server asks for one: its chain and its key, both in PEM.
    pub fn showing(mut self, chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Pem)?;
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| TlsError::Key(error.to_string()))?;
        self.shown = Some(Arc::new(SingleCertAndKey::from(pair)));
        Ok(self)
    }

    fn configure(&self) -> Result<ClientConfig, String> {
        let mut roots = self.own.clone();
        if self.system {
            // Some that cannot be read do not matter, as long as there are others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if roots.is_empty() {
            return Err("there is no root certificate to trust".into());
        }
        let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let mut config = match &self.shown {
            Some(shown) => config.with_client_cert_resolver(Arc::<SingleCertAndKey>::clone(shown)),
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Makes connections secure; what that needs is put together once.
#[derive(Clone, Debug)]
pub(super) struct Secure {
    tls: Tls,
    config: Arc<OnceCell<Arc<ClientConfig>>>,
}

impl Secure {
    pub(super) fn new(tls: Tls) -> Self {
        Self {
            tls,
            config: Arc::default(),
        }
    }

    /// Shakes hands with a server that is to be this one. `host` may be in brackets.
    pub(super) async fn secure(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let config = self.config.get_or_try_init(|| async {
            let tls = self.tls.clone();
            let configured = spawn_blocking(move || tls.configure()).await;
            configured.map_err(|error| error.to_string())?.map(Arc::new)
        });
        let connector = TlsConnector::from(Arc::clone(config.await?));
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error: InvalidDnsNameError| error.to_string())?;
        connector
            .connect(name, stream)
            .await
            .map_err(|error| error.to_string())
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(TlsError::Pem)
}

impl Default for Tls {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("system", &self.system)
            .field("own", &self.own.len())
            .field("shows", &self.shown.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem => f.write_str("there is no certificate or no private key in PEM"),
            Self::Root(why) => write!(f, "this root certificate is of no use: {why}"),
            Self::Key(why) => write!(f, "this private key is of no use: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}
