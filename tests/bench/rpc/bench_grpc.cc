// bench_grpc server DIR | client DIR PORT INFLIGHT SECONDS
//
// The same as bench_nui with gRPC C++ and its callback API. Messages are handled as raw bytes: it
// is spared the protobuf work that ours does.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using grpc::ByteBuffer;

static const char method[] = "/nui.test.v1.Echo/Echo";

static std::string read (const std::string &path)
{
    std::ifstream f (path, std::ios::binary);
    std::stringstream text;
    text << f.rdbuf ();
    return text.str ();
}

// What grpc_cpp_plugin writes for a raw callback method.
class EchoService : public grpc::Service
{
  public:
    EchoService ()
    {
        AddMethod (new grpc::internal::RpcServiceMethod (
            method, grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
        MarkMethodRawCallback (
            0, new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer> (
                   [] (grpc::CallbackServerContext *context, const ByteBuffer *request,
                       ByteBuffer *reply) {
                       grpc::ServerUnaryReactor *reactor = context->DefaultReactor ();
                       *reply = *request; // field 1 is the text in both messages
                       reactor->Finish (grpc::Status::OK);
                       return reactor;
                   }));
    }
};

static std::atomic<bool> terminated;

static int server (const std::string &dir)
{
    grpc::SslServerCredentialsOptions ssl (
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    ssl.pem_root_certs = read (dir + "/ca.pem");
    ssl.pem_key_cert_pairs.push_back ({read (dir + "/alpha.key"), read (dir + "/alpha.pem")});
    EchoService service;
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort ("127.0.0.1:0", grpc::SslServerCredentials (ssl), &port);
    builder.RegisterService (&service);
    std::unique_ptr<grpc::Server> s = builder.BuildAndStart ();
    if (!s)
        return 1;
    std::signal (SIGTERM, [] (int) { terminated = true; });
    std::printf ("%d\n", port);
    std::fflush (stdout);
    while (!terminated)
        std::this_thread::sleep_for (std::chrono::milliseconds (20));
    s->Shutdown ();
    return 0;
}

struct Load {
    grpc::GenericStub *stub;
    ByteBuffer request;
    std::atomic<uint64_t> done{0}, running{0};
    std::atomic<bool> stop{false};
};

struct Call {
    Load *load;
    std::unique_ptr<grpc::ClientContext> context;
    ByteBuffer reply;

    void start ()
    {
        context = std::make_unique<grpc::ClientContext> ();
        context->set_deadline (std::chrono::system_clock::now () + std::chrono::seconds (30));
        load->running++;
        load->stub->UnaryCall (context.get (), method, {}, &load->request, &reply,
                               [this] (grpc::Status status) {
                                   if (!status.ok ()) {
                                       std::fprintf (stderr, "bench_grpc: %s\n",
                                                     status.error_message ().c_str ());
                                       std::exit (1);
                                   }
                                   load->done++;
                                   if (!load->stop)
                                       start ();
                                   load->running--;
                               });
    }
};

static double cpu_us ()
{
    struct rusage ru;
    getrusage (RUSAGE_SELF, &ru);
    return (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e6 +
           (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

static int client (const std::string &dir, const std::string &port, int in_flight, int seconds)
{
    grpc::SslCredentialsOptions ssl;
    ssl.pem_root_certs = read (dir + "/ca.pem");
    ssl.pem_private_key = read (dir + "/alice.key");
    ssl.pem_cert_chain = read (dir + "/alice.pem");
    grpc::ChannelArguments args;
    args.SetSslTargetNameOverride ("localhost");
    auto channel = grpc::CreateCustomChannel ("127.0.0.1:" + port, grpc::SslCredentials (ssl), args);
    grpc::GenericStub stub (channel);
    std::string bytes = std::string ("\x0a\x40", 2) + std::string (64, 'x');
    grpc::Slice slice (bytes);
    Load load;
    load.stub = &stub;
    load.request = ByteBuffer (&slice, 1);
    std::vector<Call> calls (static_cast<size_t> (in_flight));
    for (Call &call : calls) {
        call.load = &load;
        call.start ();
    }
    std::this_thread::sleep_for (std::chrono::milliseconds (500)); // warm
    uint64_t from = load.done;
    double cpu = cpu_us ();
    auto begin = std::chrono::steady_clock::now ();
    std::this_thread::sleep_for (std::chrono::seconds (seconds));
    double n = static_cast<double> (load.done - from);
    std::chrono::duration<double> took = std::chrono::steady_clock::now () - begin;
    std::printf ("%.0f %.2f\n", n / took.count (), (cpu_us () - cpu) / n);
    load.stop = true;
    while (load.running > 0)
        std::this_thread::sleep_for (std::chrono::milliseconds (1));
    return 0;
}

int main (int argc, char **argv)
{
    if (argc == 3 && std::strcmp (argv[1], "server") == 0)
        return server (argv[2]);
    if (argc == 6 && std::strcmp (argv[1], "client") == 0)
        return client (argv[2], argv[3], std::atoi (argv[4]), std::atoi (argv[5]));
    std::fprintf (stderr, "usage: bench_grpc server DIR | client DIR PORT INFLIGHT SECONDS\n");
    return 2;
}
