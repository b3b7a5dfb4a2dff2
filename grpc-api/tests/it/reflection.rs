//! Reflection: tools find every service and its messages, by both versions of the protocol.

use tonic_reflection::pb::{v1, v1alpha};

use crate::fixture::{Fixture, origin};

const SERVICES: [&str; 3] = [
    "eureka.v1.Registry",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
];

#[tokio::test]
async fn services_and_symbols_are_found() {
    use v1::server_reflection_client::ServerReflectionClient;
    use v1::server_reflection_request::MessageRequest;
    use v1::server_reflection_response::MessageResponse;
    let fixture = Fixture::new();
    let service = fixture.grpc.service();
    let mut client = ServerReflectionClient::with_origin(service, origin());
    let ask = |request| v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let questions = tokio_stream::iter([
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(
            "eureka.v1.Registry.Watch".to_owned(),
        )),
    ]);
    let mut answers = client
        .server_reflection_info(questions)
        .await
        .unwrap()
        .into_inner();
    let listed = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(listed)) = listed.message_response else {
        panic!("{listed:?}");
    };
    let mut names: Vec<_> = listed.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(names, SERVICES);
    let file = answers.message().await.unwrap().unwrap();
    let Some(MessageResponse::FileDescriptorResponse(file)) = file.message_response else {
        panic!("{file:?}");
    };
    assert_eq!(file.file_descriptor_proto.len(), 1);
}

#[tokio::test]
async fn the_older_version_of_the_protocol_answers_too() {
    use v1alpha::server_reflection_client::ServerReflectionClient;
    use v1alpha::server_reflection_request::MessageRequest;
    use v1alpha::server_reflection_response::MessageResponse;
    let fixture = Fixture::new();
    let service = fixture.grpc.service();
    let mut client = ServerReflectionClient::with_origin(service, origin());
    let question = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answers = client
        .server_reflection_info(tokio_stream::iter([question]))
        .await;
    let listed = answers.unwrap().into_inner().message().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(listed)) = listed.message_response else {
        panic!("{listed:?}");
    };
    assert_eq!(listed.service.len(), SERVICES.len());
}
