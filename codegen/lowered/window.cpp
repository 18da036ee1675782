#include "codegen/lowered/window.hpp"

#include "palladium/error.hpp"

namespace palladium::lowered {

const Resident* Window::resident() const {
  if (const auto* const registers = std::get_if<InRegisters>(&in)) return registers;
  return std::get_if<InShared>(&in);
}

Resident* Window::resident() {
  return const_cast<Resident*>(static_cast<const Window&>(*this).resident());
}

const Staged& Window::staged() const {
  if (const auto* const staged = std::get_if<Staged>(&in)) return *staged;
  throw InternalError("lowered: a window that is asked how it is staged is not");
}

StorageId Window::storage() const {
  if (const Resident* const r = resident()) return r->storage;
  return is_staged() ? staged().storage : StorageId();
}

bool Window::fills() const {
  const Resident* const r = resident();
  return is_staged() || (r != nullptr && r->fill);
}

bool Window::flushes() const {
  const Resident* const r = resident();
  return r != nullptr && r->flush;
}

bool Window::is_synchronised() const {
  const auto* const direct = std::get_if<Direct>(&in);
  return direct != nullptr && direct->synchronised;
}

}  // namespace palladium::lowered
