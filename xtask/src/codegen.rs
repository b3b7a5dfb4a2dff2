//! `cargo xtask codegen`: the Rust that is made from grpc-api's .proto files, for grpc-api and for the client, and is
//! committed, so that nobody who builds the workspace or one of its packages needs a protocol compiler.

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};
use prost_build::{Method, Module, Service, ServiceGenerator};
use tonic_build::{Service as _, manual};

const PROTO: &str = "eureka/v1/registry.proto";
/// Answered with messages that were encoded once for all streams.
const SHARED: &str = "Watch";

/// What is made, and where it is committed. The client is a package without grpc-api, so it has messages of its own.
const MADE: [(&str, &str); 4] = [
    ("messages.rs", "grpc-api/src/generated"),
    ("server.rs", "grpc-api/src/generated"),
    ("registry.bin", "grpc-api/src/generated"),
    ("messages.rs", "client/src/generated"),
];

/// Write the generated sources of grpc-api and client.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a generated source is not what would be written.
    #[arg(long)]
    pub(crate) check: bool,
}

/// Writes or checks the generated sources.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = crate::root();
    let scratch = tempfile::tempdir()?;
    generate(&root.join("grpc-api/proto"), scratch.path())?;
    let mut stale = Vec::new();
    for (name, committed) in MADE {
        let made = fs::read(scratch.path().join(name)).context(name)?;
        let path = root.join(committed).join(name);
        if fs::read(&path).is_ok_and(|old| old == made) {
            continue;
        }
        if arguments.check {
            stale.push(path.display().to_string());
        } else {
            fs::write(&path, made)?;
            println!("wrote {}", path.display());
        }
    }
    if !stale.is_empty() {
        bail!(
            "not what the .proto files say: {}; run `cargo xtask codegen`",
            stale.join(", ")
        );
    }
    Ok(())
}

/// Messages and client (`messages.rs`), server (`server.rs`), and what reflection shows (`registry.bin`).
fn generate(protos: &Path, out: &Path) -> Result<()> {
    let mut compiler = protox::Compiler::new([protos])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_file(PROTO)?;
    let descriptors = compiler.file_descriptor_set();
    let bare = compiler.include_source_info(false).encode_file_descriptor_set();
    fs::write(out.join("registry.bin"), bare)?;
    let server = Rc::default();
    let mut config = prost_build::Config::new();
    config
        // Ordered, so that equal messages are equal bytes.
        .btree_map(["."])
        .service_generator(Box::new(Services {
            client: tonic_prost_build::configure()
                .build_server(false)
                .build_transport(false)
                .service_generator(),
            server: Rc::clone(&server),
        }));
    let requests = descriptors
        .file
        .into_iter()
        .map(|file| (Module::from_protobuf_package_name(file.package()), file))
        .collect();
    let modules = config.generate(requests)?;
    let [messages] = &modules.values().collect::<Vec<_>>()[..] else {
        bail!(
            "one package is expected in the .proto files, not {}",
            modules.len()
        );
    };
    fs::write(out.join("messages.rs"), messages)?;
    let server = server.take().context("no service in the .proto file")?;
    let made = out.join(format!("{}.{}.rs", server.package(), server.name()));
    manual::Builder::new()
        .build_client(false)
        .build_transport(false)
        .out_dir(out)
        .compile(&[server]);
    fs::rename(made, out.join("server.rs"))?;
    Ok(())
}

/// Has the client generated as usual, and notes what the server is to be generated from: there, one method answers with
/// messages that are encoded already.
struct Services {
    client: Box<dyn ServiceGenerator>,
    server: Rc<Cell<Option<manual::Service>>>,
}

impl ServiceGenerator for Services {
    fn generate(&mut self, service: Service, out: &mut String) {
        let mut server = manual::Service::builder()
            .name(&service.name)
            .package(&service.package);
        for comment in &service.comments.leading {
            server = server.comment(comment);
        }
        for method in &service.methods {
            server = server.method(served(method));
        }
        self.server.set(Some(server.build()));
        self.client.generate(service, out);
    }

    fn finalize(&mut self, out: &mut String) {
        self.client.finalize(out);
    }
}

fn served(method: &Method) -> manual::Method {
    let output = if method.proto_name == SHARED {
        "crate::encoded::Encoded".to_owned()
    } else {
        format!("crate::proto::{}", method.output_type)
    };
    let mut served = manual::Method::builder()
        .name(&method.name)
        .route_name(&method.proto_name)
        .input_type(format!("crate::proto::{}", method.input_type))
        .output_type(output)
        .codec_path("tonic_prost::ProstCodec");
    for comment in &method.comments.leading {
        served = served.comment(comment);
    }
    if method.client_streaming {
        served = served.client_streaming();
    }
    if method.server_streaming {
        served = served.server_streaming();
    }
    served.build()
}
