#include "codegen/nvrtc/wire.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace palladium::nvrtc::wire {
namespace {

static_assert(std::endian::native == std::endian::little);  // both ends are of one machine

constexpr std::uint32_t mark = 0x31434c50;  // "PLC1"

struct Prefix {
  std::uint32_t mark;
  std::uint32_t kind;
  std::uint64_t body_bytes;
};
static_assert(sizeof(Prefix) == 16);

// How long a wait may go on before `stopped` is asked again.
constexpr int tick_ms = 20;
constexpr std::size_t read_bytes = 64 << 10;

class Writer {
 public:
  Writer& put(std::uint64_t number) {
    body_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }
  Writer& put(std::string_view bytes) {
    put(std::uint64_t{bytes.size()});
    body_ += bytes;
    return *this;
  }
  std::string take() { return std::move(body_); }

 private:
  std::string body_;
};

/// Takes fields off a body in order; the first that does not fit spoils all.
class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {}

  Reader& take(std::uint64_t& number) {
    const std::string_view bytes = cut(sizeof number);
    if (good_) std::memcpy(&number, bytes.data(), sizeof number);
    return *this;
  }
  Reader& take(std::string& bytes) {
    std::uint64_t size = 0;
    bytes = take(size).cut(size);
    return *this;
  }
  Reader& take(int& number) {
    std::uint64_t wide = 0;
    take(wide);
    good_ = good_ && wide <= 1'000'000;
    number = good_ ? static_cast<int>(wide) : 0;
    return *this;
  }
  Reader& take(bool& truth) {
    std::uint64_t wide = 0;
    take(wide);
    good_ = good_ && wide <= 1;
    truth = good_ && wide == 1;
    return *this;
  }
  /// The number of elements of a list, each of which takes at least 8 bytes.
  std::uint64_t take_count() {
    std::uint64_t count = 0;
    take(count);
    good_ = good_ && count <= rest_.size() / 8;
    return good_ ? count : 0;
  }
  bool all() const { return good_ && rest_.empty(); }

 private:
  std::string_view cut(std::uint64_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool good_ = true;
};

std::uint64_t number_of(int value) { return static_cast<std::uint64_t>(value); }

}  // namespace

std::string encode(const Open& o) {
  return Writer().put(o.digest).put(o.process).put(o.idle_ms).put(o.memory_bytes).take();
}
bool decode(std::string_view body, Open& o) {
  return Reader(body).take(o.digest).take(o.process).take(o.idle_ms).take(o.memory_bytes).all();
}

std::string encode(const Ready& ready) { return Writer().put(ready.digest).take(); }
bool decode(std::string_view body, Ready& ready) { return Reader(body).take(ready.digest).all(); }

std::string encode(const Compile& compile) {
  const Toolchain& t = compile.toolchain;
  const Request& r = compile.request;
  Writer writer;
  writer.put(t.library).put(t.builtins).put(number_of(t.major)).put(number_of(t.minor)).put(t.id);
  writer.put(r.arch).put(r.source);
  writer.put(std::uint64_t{r.headers.size()});
  for (const Header& header : r.headers) writer.put(header.name).put(header.text);
  writer.put(std::uint64_t{r.options.size()});
  for (const std::string& option : r.options) writer.put(option);
  return writer.take();
}
bool decode(std::string_view body, Compile& compile) {
  Toolchain& t = compile.toolchain;
  Request& r = compile.request;
  Reader reader(body);
  reader.take(t.library).take(t.builtins).take(t.major).take(t.minor).take(t.id);
  reader.take(r.arch).take(r.source);
  r.headers.resize(reader.take_count());
  for (Header& header : r.headers) reader.take(header.name).take(header.text);
  r.options.resize(reader.take_count());
  for (std::string& option : r.options) reader.take(option);
  return reader.all();
}

std::string encode(const Result& result) {
  const std::string_view cubin(reinterpret_cast<const char*>(result.cubin.data()),
                               result.cubin.size());
  return Writer()
      .put(std::uint64_t{result.ok})
      .put(cubin)
      .put(result.ptx)
      .put(result.log)
      .put(std::bit_cast<std::uint64_t>(result.milliseconds))
      .take();
}
bool decode(std::string_view body, Result& result) {
  std::string cubin;
  std::uint64_t milliseconds = 0;
  const bool good = Reader(body)
                        .take(result.ok)
                        .take(cubin)
                        .take(result.ptx)
                        .take(result.log)
                        .take(milliseconds)
                        .all();
  const auto* bytes = reinterpret_cast<const std::byte*>(cubin.data());
  result.cubin.assign(bytes, bytes + cubin.size());
  result.milliseconds = std::bit_cast<double>(milliseconds);
  return good;
}

std::string encode(const Failed& failed) {
  return Writer().put(std::uint64_t{failed.is_compile_error}).put(failed.message).take();
}
bool decode(std::string_view body, Failed& failed) {
  return Reader(body).take(failed.is_compile_error).take(failed.message).all();
}

std::string encode(const Died& died) { return Writer().put(died.how).put(died.words).take(); }
bool decode(std::string_view body, Died& died) {
  return Reader(body).take(died.how).take(died.words).all();
}

std::string encode(const Unable& unable) { return Writer().put(unable.problem).take(); }
bool decode(std::string_view body, Unable& unable) {
  return Reader(body).take(unable.problem).all();
}

std::string frame(Kind kind, std::string_view body) {
  const Prefix prefix{mark, static_cast<std::uint32_t>(kind), body.size()};
  std::string bytes(reinterpret_cast<const char*>(&prefix), sizeof prefix);
  return bytes += body;
}

Stream::Next Stream::next(Message& message) {
  Prefix prefix;
  if (bytes_.size() < sizeof prefix) return Next::incomplete;
  std::memcpy(&prefix, bytes_.data(), sizeof prefix);
  if (prefix.mark != mark || prefix.kind < static_cast<std::uint32_t>(Kind::open) ||
      prefix.kind > static_cast<std::uint32_t>(Kind::unable) || prefix.body_bytes > most_body_bytes)
    return Next::malformed;
  const std::size_t whole = sizeof prefix + prefix.body_bytes;
  if (bytes_.size() < whole) return Next::incomplete;
  message.kind = static_cast<Kind>(prefix.kind);
  message.body = bytes_.substr(sizeof prefix, prefix.body_bytes);
  bytes_.erase(0, whole);
  return Next::message;
}

void Channel::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
}

bool Channel::wait(short events, const Stopped& stopped) const {
  while (true) {
    if (stopped && stopped()) return false;
    pollfd p{socket_, events, 0};
    const int ready = ::poll(&p, 1, stopped ? tick_ms : -1);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
  }
}

bool Channel::send(Kind kind, std::string_view body, const Stopped& stopped) {
  const std::string bytes = frame(kind, body);
  for (std::size_t sent = 0; sent < bytes.size();) {
    if (!wait(POLLOUT, stopped)) return false;
    const ssize_t count =
        ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0)
      sent += static_cast<std::size_t>(count);
    else if (errno != EINTR && errno != EAGAIN)
      return false;
  }
  return true;
}

Channel::Read Channel::read_some() {
  char bytes[read_bytes];
  const ssize_t count = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count > 0) {
    stream_.append({bytes, static_cast<std::size_t>(count)});
    return Read::some;
  }
  return count < 0 && (errno == EINTR || errno == EAGAIN) ? Read::none : Read::closed;
}

Received Channel::receive_now(Message& message) {
  while (true) {
    switch (stream_.next(message)) {
    case Stream::Next::message: return Received::message;
    case Stream::Next::malformed: return Received::malformed;
    case Stream::Next::incomplete: break;
    }
    switch (read_some()) {
    case Read::some: break;
    case Read::none: return Received::nothing;
    case Read::closed: return Received::closed;
    }
  }
}

Received Channel::receive(Message& message, const Stopped& stopped) {
  while (true) {
    const Received received = receive_now(message);
    if (received != Received::nothing || !wait(POLLIN, stopped)) return received;
  }
}

}  // namespace palladium::nvrtc::wire
