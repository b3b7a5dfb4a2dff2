//! The crate `eureka-client`: one call starts its threads, which renew and fetch every 30 s.

use eureka_client::{BaseConfig, EurekaClient, EurekaError, Instance, Method, PortData, StatusType};
use reqwest::Url;
use serde_json::json;
use std::error::Error;
use std::io::BufRead;

fn main() -> Result<(), Box<dyn Error>> {
    let config = config()?;
    let id = config.instance.host_name.clone();
    let client = EurekaClient::new(config);
    client.start();
    println!("registering {}", json!({ "id": id }));
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "leave" {
            break;
        }
        println!("{}", answer(&client, &line));
    }
    // The client leaves when it is dropped.
    drop(client);
    println!("left");
    // Its threads sleep for up to 30 s before they see that it has gone.
    std::process::exit(0)
}

fn config() -> Result<BaseConfig, Box<dyn Error>> {
    let environment = std::env::var;
    let server = Url::parse(&environment("EUREKA_URL")?)?;
    let port: u16 = environment("INSTANCE_PORT")?.parse()?;
    let (app, host) = (environment("APP")?, environment("HOST_NAME")?);
    let home = format!("http://{host}:{port}/");
    let mut config = BaseConfig::default();
    config.eureka.host = server.host_str().ok_or("EUREKA_URL has no host")?.to_owned();
    config.eureka.port = server.port_or_known_default().ok_or("EUREKA_URL has no port")?;
    config.eureka.service_path = server.path().to_owned();
    config.instance = Instance {
        host_name: host,
        ip_addr: "127.0.0.1".to_owned(),
        vip_address: app.to_lowercase(),
        secure_vip_address: app.to_lowercase(),
        app,
        // The client sets UP itself once it is registered.
        status: StatusType::Starting,
        port: Some(PortData::new(port, true)),
        status_page_url: format!("{home}info"),
        health_check_url: format!("{home}health"),
        home_page_url: home,
        ..Instance::default()
    };
    Ok(config)
}

fn answer(client: &EurekaClient, line: &str) -> String {
    match line.split_once(' ') {
        Some(("find", app)) => find(client, app),
        Some(("status", _)) => "unsupported the client has no call for it".to_owned(),
        _ => format!("error no command {line}"),
    }
}

/// The only use the client makes of its registry is to call another application. An answer, or a failure to connect,
/// tells that it knew where to.
fn find(client: &EurekaClient, app: &str) -> String {
    match client.make_request(app, "", Method::GET, &json!({}), Default::default()) {
        Ok(_) | Err(EurekaError::Network(_)) => "found 1".to_owned(),
        Err(EurekaError::UnexpectedState(_)) => "found 0".to_owned(),
        Err(error) => format!("error {error}"),
    }
}
