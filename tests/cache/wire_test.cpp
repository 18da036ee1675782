// The bytes between a program and its compile helper: what is sent arrives, what is damaged is
// refused.
#include "codegen/nvrtc/wire.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <random>
#include <string>
#include <thread>

using namespace palladium;
using namespace palladium::nvrtc;
using wire::Kind;
using wire::Received;

namespace {

wire::Compile a_request() {
  return {.toolchain = {.library = "/lib/libnvrtc.so.13",
                        .builtins = "/lib/libnvrtc-builtins.so.13.0",
                        .major = 13,
                        .minor = 0,
                        .id = "0123456789abcdef"},
          .request = {.source = std::string("zero \0 inside", 13),
                      .headers = {{"a.cuh", "int a;"}, {"", ""}},
                      .options = {"--one", "--two"},
                      .arch = "sm_90a"}};
}

struct Channels {
  Channels() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    here = std::make_unique<wire::Channel>(ends[0]);
    there = std::make_unique<wire::Channel>(ends[1]);
  }
  std::unique_ptr<wire::Channel> here, there;
};

/// Whether the body is taken for a message of that kind: it may be refused, or hold something else,
/// but do no harm.
template <class Body>
bool reads(const std::string& bytes) {
  Body body;
  return wire::decode(bytes, body);
}
bool reads_any(const std::string& bytes) {
  const bool all[] = {reads<wire::Open>(bytes),    reads<wire::Ready>(bytes),
                      reads<wire::Compile>(bytes), reads<Result>(bytes),
                      reads<wire::Failed>(bytes),  reads<wire::Died>(bytes),
                      reads<wire::Unable>(bytes)};
  return std::ranges::count(all, true) != 0;
}

}  // namespace

TEST_CASE("a request arrives as it was sent") {
  const wire::Compile sent = a_request();
  wire::Compile arrived;
  REQUIRE(wire::decode(wire::encode(sent), arrived));
  CHECK(arrived.toolchain.library == sent.toolchain.library);
  CHECK(arrived.toolchain.builtins == sent.toolchain.builtins);
  CHECK(arrived.toolchain.version() == "13.0");
  CHECK(arrived.toolchain.id == sent.toolchain.id);
  CHECK(arrived.request.source == sent.request.source);
  REQUIRE(arrived.request.headers.size() == 2);
  CHECK(arrived.request.headers[0].name == "a.cuh");
  CHECK(arrived.request.headers[0].text == "int a;");
  CHECK(arrived.request.options == sent.request.options);
  CHECK(arrived.request.arch == "sm_90a");
}

TEST_CASE("a result arrives as it was sent") {
  const Result sent = {.ok = true,
                       .cubin = std::vector<std::byte>(1000, std::byte{0xff}),
                       .ptx = "ptx",
                       .log = "log",
                       .milliseconds = 60.25};
  Result arrived;
  REQUIRE(wire::decode(wire::encode(sent), arrived));
  CHECK(arrived.ok);
  CHECK(arrived.cubin == sent.cubin);
  CHECK(arrived.ptx == "ptx");
  CHECK(arrived.log == "log");
  CHECK(arrived.milliseconds == 60.25);
}

TEST_CASE("the small messages arrive as they were sent") {
  wire::Open open;
  REQUIRE(wire::decode(wire::encode(wire::Open{"digest", 42, 10'000, 1ull << 40}), open));
  CHECK(open.digest == "digest");
  CHECK(open.process == 42);
  CHECK(open.idle_ms == 10'000);
  CHECK(open.memory_bytes == 1ull << 40);
  wire::Failed failed;
  REQUIRE(wire::decode(wire::encode(wire::Failed{true, "why"}), failed));
  CHECK(failed.is_compile_error);
  CHECK(failed.message == "why");
  wire::Died died;
  REQUIRE(wire::decode(wire::encode(wire::Died{"how", "words"}), died));
  CHECK(died.how == "how");
  CHECK(died.words == "words");
  wire::Unable unable;
  REQUIRE(wire::decode(wire::encode(wire::Unable{"problem"}), unable));
  CHECK(unable.problem == "problem");
}

TEST_CASE("a body that is too short or too long is refused") {
  const std::string body = wire::encode(a_request());
  for (std::size_t size = 0; size < body.size(); ++size)
    CHECK_FALSE(reads<wire::Compile>(body.substr(0, size)));
  CHECK_FALSE(reads<wire::Compile>(body + "x"));
  const std::string result = wire::encode(Result{.cubin = std::vector<std::byte>(10)});
  for (std::size_t size = 0; size < result.size(); ++size)
    CHECK_FALSE(reads<Result>(result.substr(0, size)));
}

TEST_CASE("a body of random bytes, or with flipped bits, harms nobody") {
  std::mt19937 random(1);
  const std::string body = wire::encode(a_request());
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = body;
    if (round % 2 == 0) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    } else {
      bytes.resize(random() % 200);
      for (char& byte : bytes) byte = static_cast<char>(random());
    }
    if (!reads_any(bytes)) ++refused;
  }
  CHECK(refused > 10'000);
}

TEST_CASE("a count of elements that the body cannot hold takes no memory") {
  // Toolchain, arch and source, all empty, then a count of headers.
  std::string body(8 * 7, '\0');
  body += std::string("\xff\xff\xff\xff\xff\xff\xff\x00", 8);
  CHECK_FALSE(reads<wire::Compile>(body));
}

TEST_CASE("messages are cut out of a stream however it is chopped") {
  const std::string bytes = wire::frame(Kind::compile, "first") + wire::frame(Kind::bye, "") +
                            wire::frame(Kind::done, std::string(300, 'x'));
  for (const std::size_t piece : {1, 3, 16, 17, 1000}) {
    CAPTURE(piece);
    wire::Stream stream;
    std::vector<wire::Message> messages;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      stream.append(std::string_view(bytes).substr(at, piece));
      wire::Message message;
      while (stream.next(message) == wire::Stream::Next::message) messages.push_back(message);
    }
    REQUIRE(messages.size() == 3);
    CHECK(messages[0].kind == Kind::compile);
    CHECK(messages[0].body == "first");
    CHECK(messages[1].kind == Kind::bye);
    CHECK(messages[2].body.size() == 300);
  }
}

TEST_CASE("a stream that is no conversation is malformed at its first 16 bytes") {
  const std::string good = wire::frame(Kind::compile, "body");
  std::string mark = good, kind = good, length = good;
  mark[0] ^= 1;
  kind[4] = 99;
  length[13] = 1;  // 2^40 bytes
  for (const std::string& bytes : {mark, kind, length, std::string(16, 'x')}) {
    wire::Stream stream;
    stream.append(std::string_view(bytes).substr(0, 16));
    wire::Message message;
    CHECK(stream.next(message) == wire::Stream::Next::malformed);
  }
}

TEST_CASE("a channel says when the other end closes, also in the middle of a message") {
  Channels channels;
  wire::Message message;
  CHECK(channels.here->receive_now(message) == Received::nothing);
  CHECK(channels.here->receive(message, [] { return true; }) == Received::nothing);
  REQUIRE(channels.there->send(Kind::bye, ""));
  CHECK(channels.here->receive(message) == Received::message);
  const std::string half = wire::frame(Kind::done, "body").substr(0, 18);
  REQUIRE(::send(channels.there->socket(), half.data(), half.size(), 0) == 18);
  channels.there->close();
  CHECK(channels.here->receive(message) == Received::closed);
  // And raises no SIGPIPE.
  CHECK_FALSE(channels.here->send(Kind::compile, "body"));
}

TEST_CASE("a message of many megabytes passes a channel whose other end reads late") {
  Channels channels;
  const std::string body(20 << 20, 'x');
  bool is_sent = false;
  std::thread sender([&] { is_sent = channels.there->send(Kind::done, body); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  wire::Message message;
  CHECK(channels.here->receive(message) == Received::message);
  CHECK(message.body == body);
  sender.join();
  CHECK(is_sent);
}
