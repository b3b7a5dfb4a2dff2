/// Generated server implementations.
pub mod registry_server {
    #![allow(
        unused_variables,
        dead_code,
        missing_docs,
        clippy::wildcard_imports,
        clippy::let_unit_value,
    )]
    use tonic::codegen::*;
    /// Generated trait containing gRPC methods that should be implemented for use with RegistryServer.
    #[async_trait]
    pub trait Registry: std::marker::Send + std::marker::Sync + 'static {
        /// Registers an instance, or replaces what is registered under the same application and id. The lease begins anew.
        ///
        /// INVALID_ARGUMENT: a required field is missing, a text or the metadata is too long, or a port, status, data centre or
        /// time makes no sense.
        async fn register(
            &self,
            request: tonic::Request<crate::proto::RegisterRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::RegisterResponse>,
            tonic::Status,
        >;
        /// Renews a lease. Services do that every `renewal_interval_secs`, by this call or on a `KeepAlive` stream.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: no such lease, or the server does not know its status; register.
        async fn renew(
            &self,
            request: tonic::Request<crate::proto::RenewRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::RenewResponse>,
            tonic::Status,
        >;
        /// Removes an instance at once.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: it was not there.
        async fn cancel(
            &self,
            request: tonic::Request<crate::proto::CancelRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::CancelResponse>,
            tonic::Status,
        >;
        /// Sets the status that clients see, whatever the instance reports, until `ClearStatus`.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: no such instance. INVALID_ARGUMENT: the status is none.
        async fn set_status(
            &self,
            request: tonic::Request<crate::proto::SetStatusRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::SetStatusResponse>,
            tonic::Status,
        >;
        /// Takes back what `SetStatus` set; if nothing is set, nothing changes.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: no such instance. INVALID_ARGUMENT: the status is none.
        async fn clear_status(
            &self,
            request: tonic::Request<crate::proto::ClearStatusRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::ClearStatusResponse>,
            tonic::Status,
        >;
        /// Sets single pairs of the metadata and leaves the others.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: no such instance. INVALID_ARGUMENT: no pair, or the metadata would be too long.
        async fn update_metadata(
            &self,
            request: tonic::Request<crate::proto::UpdateMetadataRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::UpdateMetadataResponse>,
            tonic::Status,
        >;
        /// One instance. Never held back.
        ///
        /// NOT_FOUND, ErrorInfo NOT_REGISTERED: no such instance.
        async fn get_instance(
            &self,
            request: tonic::Request<crate::proto::GetInstanceRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::GetInstanceResponse>,
            tonic::Status,
        >;
        /// All instances of one application in one message. `ListApplications` gives a large one by pages.
        ///
        /// NOT_FOUND, ErrorInfo NO_SUCH_APPLICATION: it has none. UNAVAILABLE, ErrorInfo READS_HELD: the server has just started
        /// and does not know the whole registry yet.
        async fn get_application(
            &self,
            request: tonic::Request<crate::proto::GetApplicationRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::GetApplicationResponse>,
            tonic::Status,
        >;
        /// The instances that a filter selects, by applications, a page at a time. Each page is taken from the registry as it is
        /// when the page is asked for.
        ///
        /// INVALID_ARGUMENT: filter, page size or page token. UNAVAILABLE, ErrorInfo READS_HELD: as for GetApplication.
        async fn list_applications(
            &self,
            request: tonic::Request<crate::proto::ListApplicationsRequest>,
        ) -> std::result::Result<
            tonic::Response<crate::proto::ListApplicationsResponse>,
            tonic::Status,
        >;
        /// Server streaming response type for the Watch method.
        type WatchStream: tonic::codegen::tokio_stream::Stream<
                Item = std::result::Result<crate::encoded::Encoded, tonic::Status>,
            >
            + std::marker::Send
            + 'static;
        /// What is registered, and then every change of it, in order, none left out, until either side ends the stream.
        ///
        /// With a cursor the changes after it follow at once if the server still has them. Otherwise (no cursor; one of another
        /// server, or from before a restart; too many changes in between) a snapshot comes first. A reader that is too slow for
        /// the changes gets a snapshot again in the middle of the stream: nothing is queued for it.
        ///
        /// INVALID_ARGUMENT: filter or cursor. UNAVAILABLE, ErrorInfo READS_HELD: as for GetApplication; ErrorInfo STOPPING ends
        /// streams under way when the server stops: go on at another server with the same cursor.
        async fn watch(
            &self,
            request: tonic::Request<crate::proto::WatchRequest>,
        ) -> std::result::Result<tonic::Response<Self::WatchStream>, tonic::Status>;
        /// Server streaming response type for the KeepAlive method.
        type KeepAliveStream: tonic::codegen::tokio_stream::Stream<
                Item = std::result::Result<
                    crate::proto::KeepAliveResponse,
                    tonic::Status,
                >,
            >
            + std::marker::Send
            + 'static;
        /// Renewals of many instances over one stream. Each message is answered by one, with a result for each of its renewals, in
        /// their order. Only a message renews: an open stream does not, and its end neither cancels nor shortens any lease.
        ///
        /// INVALID_ARGUMENT: a renewal without app or id, or too many in one message. The stream ends, and nothing of that message
        /// was applied.
        async fn keep_alive(
            &self,
            request: tonic::Request<tonic::Streaming<crate::proto::KeepAliveRequest>>,
        ) -> std::result::Result<tonic::Response<Self::KeepAliveStream>, tonic::Status>;
    }
    /// Registers, renews and finds instances, and tells what changes.
    #[derive(Debug)]
    pub struct RegistryServer<T> {
        inner: Arc<T>,
        accept_compression_encodings: EnabledCompressionEncodings,
        send_compression_encodings: EnabledCompressionEncodings,
        max_decoding_message_size: Option<usize>,
        max_encoding_message_size: Option<usize>,
    }
    impl<T> RegistryServer<T> {
        pub fn new(inner: T) -> Self {
            Self::from_arc(Arc::new(inner))
        }
        pub fn from_arc(inner: Arc<T>) -> Self {
            Self {
                inner,
                accept_compression_encodings: Default::default(),
                send_compression_encodings: Default::default(),
                max_decoding_message_size: None,
                max_encoding_message_size: None,
            }
        }
        pub fn with_interceptor<F>(
            inner: T,
            interceptor: F,
        ) -> InterceptedService<Self, F>
        where
            F: tonic::service::Interceptor,
        {
            InterceptedService::new(Self::new(inner), interceptor)
        }
        /// Enable decompressing requests with the given encoding.
        #[must_use]
        pub fn accept_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.accept_compression_encodings.enable(encoding);
            self
        }
        /// Compress responses with the given encoding, if the client supports it.
        #[must_use]
        pub fn send_compressed(mut self, encoding: CompressionEncoding) -> Self {
            self.send_compression_encodings.enable(encoding);
            self
        }
        /// Limits the maximum size of a decoded message.
        ///
        /// Default: `4MB`
        #[must_use]
        pub fn max_decoding_message_size(mut self, limit: usize) -> Self {
            self.max_decoding_message_size = Some(limit);
            self
        }
        /// Limits the maximum size of an encoded message.
        ///
        /// Default: `usize::MAX`
        #[must_use]
        pub fn max_encoding_message_size(mut self, limit: usize) -> Self {
            self.max_encoding_message_size = Some(limit);
            self
        }
    }
    impl<T, B> tonic::codegen::Service<http::Request<B>> for RegistryServer<T>
    where
        T: Registry,
        B: Body + std::marker::Send + 'static,
        B::Error: Into<StdError> + std::marker::Send + 'static,
    {
        type Response = http::Response<tonic::body::Body>;
        type Error = std::convert::Infallible;
        type Future = BoxFuture<Self::Response, Self::Error>;
        fn poll_ready(
            &mut self,
            _cx: &mut Context<'_>,
        ) -> Poll<std::result::Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }
        fn call(&mut self, req: http::Request<B>) -> Self::Future {
            match req.uri().path() {
                "/eureka.v1.Registry/Register" => {
                    #[allow(non_camel_case_types)]
                    struct RegisterSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::RegisterRequest>
                    for RegisterSvc<T> {
                        type Response = crate::proto::RegisterResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::RegisterRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::register(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RegisterSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/Renew" => {
                    #[allow(non_camel_case_types)]
                    struct RenewSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::RenewRequest>
                    for RenewSvc<T> {
                        type Response = crate::proto::RenewResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::RenewRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::renew(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = RenewSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/Cancel" => {
                    #[allow(non_camel_case_types)]
                    struct CancelSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::CancelRequest>
                    for CancelSvc<T> {
                        type Response = crate::proto::CancelResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::CancelRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::cancel(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = CancelSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/SetStatus" => {
                    #[allow(non_camel_case_types)]
                    struct SetStatusSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::SetStatusRequest>
                    for SetStatusSvc<T> {
                        type Response = crate::proto::SetStatusResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::SetStatusRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::set_status(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = SetStatusSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/ClearStatus" => {
                    #[allow(non_camel_case_types)]
                    struct ClearStatusSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::ClearStatusRequest>
                    for ClearStatusSvc<T> {
                        type Response = crate::proto::ClearStatusResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::ClearStatusRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::clear_status(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ClearStatusSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/UpdateMetadata" => {
                    #[allow(non_camel_case_types)]
                    struct UpdateMetadataSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::UpdateMetadataRequest>
                    for UpdateMetadataSvc<T> {
                        type Response = crate::proto::UpdateMetadataResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::UpdateMetadataRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::update_metadata(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = UpdateMetadataSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/GetInstance" => {
                    #[allow(non_camel_case_types)]
                    struct GetInstanceSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::GetInstanceRequest>
                    for GetInstanceSvc<T> {
                        type Response = crate::proto::GetInstanceResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::GetInstanceRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::get_instance(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetInstanceSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/GetApplication" => {
                    #[allow(non_camel_case_types)]
                    struct GetApplicationSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::GetApplicationRequest>
                    for GetApplicationSvc<T> {
                        type Response = crate::proto::GetApplicationResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::GetApplicationRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::get_application(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = GetApplicationSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/ListApplications" => {
                    #[allow(non_camel_case_types)]
                    struct ListApplicationsSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::UnaryService<crate::proto::ListApplicationsRequest>
                    for ListApplicationsSvc<T> {
                        type Response = crate::proto::ListApplicationsResponse;
                        type Future = BoxFuture<
                            tonic::Response<Self::Response>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<
                                crate::proto::ListApplicationsRequest,
                            >,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::list_applications(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = ListApplicationsSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.unary(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/Watch" => {
                    #[allow(non_camel_case_types)]
                    struct WatchSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::ServerStreamingService<crate::proto::WatchRequest>
                    for WatchSvc<T> {
                        type Response = crate::encoded::Encoded;
                        type ResponseStream = T::WatchStream;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<crate::proto::WatchRequest>,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::watch(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = WatchSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.server_streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                "/eureka.v1.Registry/KeepAlive" => {
                    #[allow(non_camel_case_types)]
                    struct KeepAliveSvc<T: Registry>(pub Arc<T>);
                    impl<
                        T: Registry,
                    > tonic::server::StreamingService<crate::proto::KeepAliveRequest>
                    for KeepAliveSvc<T> {
                        type Response = crate::proto::KeepAliveResponse;
                        type ResponseStream = T::KeepAliveStream;
                        type Future = BoxFuture<
                            tonic::Response<Self::ResponseStream>,
                            tonic::Status,
                        >;
                        fn call(
                            &mut self,
                            request: tonic::Request<
                                tonic::Streaming<crate::proto::KeepAliveRequest>,
                            >,
                        ) -> Self::Future {
                            let inner = Arc::clone(&self.0);
                            let fut = async move {
                                <T as Registry>::keep_alive(&inner, request).await
                            };
                            Box::pin(fut)
                        }
                    }
                    let accept_compression_encodings = self.accept_compression_encodings;
                    let send_compression_encodings = self.send_compression_encodings;
                    let max_decoding_message_size = self.max_decoding_message_size;
                    let max_encoding_message_size = self.max_encoding_message_size;
                    let inner = self.inner.clone();
                    let fut = async move {
                        let method = KeepAliveSvc(inner);
                        let codec = tonic_prost::ProstCodec::default();
                        let mut grpc = tonic::server::Grpc::new(codec)
                            .apply_compression_config(
                                accept_compression_encodings,
                                send_compression_encodings,
                            )
                            .apply_max_message_size_config(
                                max_decoding_message_size,
                                max_encoding_message_size,
                            );
                        let res = grpc.streaming(method, req).await;
                        Ok(res)
                    };
                    Box::pin(fut)
                }
                _ => {
                    Box::pin(async move {
                        let mut response = http::Response::new(
                            tonic::body::Body::default(),
                        );
                        let headers = response.headers_mut();
                        headers
                            .insert(
                                tonic::Status::GRPC_STATUS,
                                (tonic::Code::Unimplemented as i32).into(),
                            );
                        headers
                            .insert(
                                http::header::CONTENT_TYPE,
                                tonic::metadata::GRPC_CONTENT_TYPE,
                            );
                        Ok(response)
                    })
                }
            }
        }
    }
    impl<T> Clone for RegistryServer<T> {
        fn clone(&self) -> Self {
            let inner = self.inner.clone();
            Self {
                inner,
                accept_compression_encodings: self.accept_compression_encodings,
                send_compression_encodings: self.send_compression_encodings,
                max_decoding_message_size: self.max_decoding_message_size,
                max_encoding_message_size: self.max_encoding_message_size,
            }
        }
    }
    /// Generated gRPC service name
    pub const SERVICE_NAME: &str = "eureka.v1.Registry";
    impl<T> tonic::server::NamedService for RegistryServer<T> {
        const NAME: &'static str = SERVICE_NAME;
    }
}
