#include "runtime/interpreter/window.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/interpreter/number.hpp"

namespace palladium::interpreter {
namespace {

graph::Extents extents(const BlockMapping& mapping) {
  graph::Extents shape;
  for (const BlockDim& d : mapping.block_shape)
    shape.push_back(d.kind == BlockDim::Kind::squeezed ? 1 : d.size);
  return shape;
}

}  // namespace

Window::Window(const Operand& operand, std::uint64_t poison)
    : operand_(&operand),
      dtype_(operand.mapping->array_aval.dtype),
      poison_(poison),
      shape_(extents(*operand.mapping)),
      ref_shape_(without_squeezed()),
      strides_(dense_strides(shape_, dtype_.bytes())),
      count_(graph::element_count(shape_)),
      stored_(operand.writers != nullptr && operand.written),
      starts_(shape_.size()),
      low_(shape_.size()),
      high_(shape_.size()) {}

Window::Window(const graph::Type& type, std::string name, std::uint64_t poison)
    : name_(std::move(name)),
      dtype_(type.dtype),
      poison_(poison),
      shape_(type.shape),
      ref_shape_(shape_),
      strides_(dense_strides(shape_, dtype_.bytes())),
      count_(graph::element_count(shape_)),
      low_(shape_.size()),
      high_(shape_) {}

std::optional<int> Window::open(std::span<const std::int64_t> indices, std::uint32_t program) {
  indices_.assign(indices.begin(), indices.end());
  program_ = program;
  loaded_ = false;
  written_ = Written::nothing;
  known_ = is_fresh() ? Known::nothing : Known::all;
  was_read_ = false;
  ++epoch_;
  first_written_ = std::numeric_limits<std::int64_t>::max();
  last_written_ = -1;
  inside_ = true;
  std::size_t slices = shape_.size();  // whose sizes stand behind
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const BlockDim& dim = operand_->mapping->block_shape[d];
    const std::int64_t extent = operand_->shape[d];
    if (dim.kind == BlockDim::Kind::bounded_slice) {
      starts_[d] = indices[d];
      low_[d] = 0;
      high_[d] = indices[slices++];
      if (starts_[d] < 0 || high_[d] < 0 || high_[d] > shape_[d] || starts_[d] + high_[d] > extent)
        return static_cast<int>(d);
      inside_ = inside_ && high_[d] == shape_[d];
      continue;
    }
    const std::int64_t start = indices[d] * dim.step() - dim.pad_lo;
    starts_[d] = start;
    low_[d] = std::max<std::int64_t>(0, -start);
    high_[d] = std::min(shape_[d], extent - start);
    const bool may_be_empty =
        dim.kind == BlockDim::Kind::whole || (dim.kind == BlockDim::Kind::bounded && start == 0);
    if (low_[d] >= high_[d] && !may_be_empty) return static_cast<int>(d);
    inside_ = inside_ && low_[d] == 0 && high_[d] == shape_[d];
  }
  in_array_ = stays_in_array();
  return std::nullopt;
}

graph::Extents Window::without_squeezed() const {
  graph::Extents shape;
  for (std::size_t d = 0; d < shape_.size(); ++d)
    if (!is_squeezed(d)) shape.push_back(shape_[d]);
  return shape;
}

void Window::poison() {
  allocate();
  fill(contents_.get(), count_, dtype_.bytes(), poison_);
  loaded_ = true;
  known_ = Known::nothing;
}

bool Window::is_squeezed(std::size_t dimension) const {
  return operand_ != nullptr &&
         operand_->mapping->block_shape[dimension].kind == BlockDim::Kind::squeezed;
}

// Nobody writes the array while the program runs and nothing is out of bounds: no copy is needed.
bool Window::stays_in_array() const {
  return is_array() || (operand_ != nullptr && operand_->keeps_contents && !operand_->written &&
                        !operand_->aliased && inside_);
}

void Window::bind(View& root) {
  root.window = this;
  root.dtype = dtype_;
  root.bytes = dtype_.bytes();
  root.listed = false;
  root.misfits.clear();
  root.chosen = false;
  root.shape = ref_shape_;
  root.strides.clear();
  root.offset = 0;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const std::int64_t stride = in_array_ ? operand_->strides[d] * dtype_.bytes() : strides_[d];
    if (in_array_) root.offset += starts_[d] * stride;
    if (!is_squeezed(d)) root.strides.push_back(stride);
  }
}

void Window::allocate() {
  if (!contents_) contents_ = std::make_unique_for_overwrite<std::byte[]>(bytes());
}

// For a part of the contents to be set.
void Window::prepare(bool elements) {
  know_some();
  if (!loaded_ && (!elements || !stored_)) load();
  if (stored_ && stamps_.empty()) stamps_.resize(static_cast<std::size_t>(count_));
}

void Window::wrote_whole(graph::ValueId store) {
  loaded_ = true;
  written_ = Written::whole;
  known_ = Known::all;
  whole_store_ = store;
  if (!inside_) poison_outside();
}

// f(offset in the contents and in the array, both in bytes, number of the first element in the
// array, elements): the rows of the part in bounds.
template <class F>
void Window::for_each_row(F&& f) const {
  const std::size_t rank = shape_.size();
  if (rank == 0) {
    f(std::int64_t(0), std::int64_t(0), std::int64_t(0), std::int64_t(1));
    return;
  }
  const std::vector<std::int64_t> numbers = dense_strides(operand_->shape, 1);
  for (std::size_t d = 0; d < rank; ++d)
    if (low_[d] >= high_[d]) return;  // a bounded slice without elements
  std::vector<std::int64_t> index = low_;
  for (;;) {
    std::int64_t contents = 0, array = 0, number = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      contents += index[d] * strides_[d];
      array += (starts_[d] + index[d]) * operand_->strides[d] * dtype_.bytes();
      number += (starts_[d] + index[d]) * numbers[d];
    }
    f(contents, array, number, high_[rank - 1] - low_[rank - 1]);
    std::size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == high_[d - 1]) {
      index[d - 1] = low_[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

void Window::load() {
  allocate();
  loaded_ = true;
  std::vector<std::byte> mine;
  if (written_ == Written::some && stored_) mine.assign(contents_.get(), contents_.get() + bytes());
  const int size = dtype_.bytes();
  if (!inside_ || !operand_->keeps_contents) fill(contents_.get(), count_, size, poison_);
  if (operand_->keeps_contents) {
    const std::int64_t last = shape_.empty() ? size : operand_->strides.back() * size;
    for_each_row([&](std::int64_t to, std::int64_t from, std::int64_t, std::int64_t n) {
      copy_run(contents_.get() + to, size, operand_->data + from, last, n, size);
    });
  } else if (stored_by_ == program_) {
    // An output block, visited again: what the program stored before.
    know_some();
    const std::int64_t last = shape_.empty() ? size : operand_->strides.back() * size;
    for_each_row([&](std::int64_t to, std::int64_t from, std::int64_t first, std::int64_t n) {
      for (std::int64_t k = 0; k < n; ++k) {
        const auto write = operand_->writers->writer(static_cast<std::size_t>(first + k));
        if (!write || (write->program != program_ && !operand_->many_writers)) continue;
        std::memcpy(contents_.get() + to + k * size, operand_->data + from + k * last,
                    static_cast<std::size_t>(size));
        if (known_ == Known::some)
          std::memset(&known_bytes_[static_cast<std::size_t>(to + k * size)], 1,
                      static_cast<std::size_t>(size));
      }
    });
  }
  if (!mine.empty()) {
    for (std::int64_t e = first_written_; e <= last_written_; ++e)
      if (is_stamped(e))
        std::memcpy(contents_.get() + e * size, mine.data() + e * size,
                    static_cast<std::size_t>(size));
    if (!inside_) poison_outside();
  }
}

bool Window::is_inside(std::int64_t offset, int bytes) const {
  const int size = dtype_.bytes();
  for (std::int64_t e = offset / size; e <= (offset + bytes - 1) / size; ++e)
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const std::int64_t index = e * size / strides_[d] % shape_[d];
      if (index < low_[d] || index >= high_[d]) return false;
    }
  return true;
}

// f(offset in bytes, number of elements): the parts out of bounds, row by row.
template <class F>
void Window::for_each_outside(F&& f) const {
  const std::size_t rank = shape_.size();
  if (inside_ || rank == 0) return;
  const std::int64_t row = shape_[rank - 1];
  const int size = dtype_.bytes();
  std::vector<std::int64_t> index(rank);
  for (std::int64_t at = 0;; at += row * size) {
    bool outside = false;
    for (std::size_t d = 0; d + 1 < rank; ++d)
      outside = outside || index[d] < low_[d] || index[d] >= high_[d];
    if (outside) {
      f(at, row);
    } else {
      f(at, low_[rank - 1]);
      f(at + high_[rank - 1] * size, row - high_[rank - 1]);
    }
    std::size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == shape_[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

void Window::poison_outside() {
  for_each_outside([&](std::int64_t at, std::int64_t elements) {
    fill(contents_.get() + at, elements, dtype_.bytes(), poison_);
  });
}

// ---- what is known

// From here on byte by byte. What lies out of bounds is known: it is poison.
void Window::know_some() {
  if (known_ != Known::nothing) return;
  known_ = Known::some;
  known_bytes_.assign(bytes(), 0);
  for_each_outside([&](std::int64_t at, std::int64_t elements) {
    std::memset(known_bytes_.data() + at, 1, static_cast<std::size_t>(elements * dtype_.bytes()));
  });
}

void Window::learn(const Run& run, int bytes) {
  std::uint8_t* known = known_bytes_.data() + run.offset;
  const auto size = static_cast<std::size_t>(bytes);
  if (run.stride == bytes || run.count == 1) {
    std::memset(known, 1, size * static_cast<std::size_t>(run.count));
    return;
  }
  for (std::int64_t k = 0; k < run.count; ++k) std::memset(known + k * run.stride, 1, size);
}

std::optional<std::int64_t> Window::find_unknown(const Run& run, int bytes) {
  if (is_array()) {
    for (std::int64_t k = 0; k < run.count; ++k) {
      const std::int64_t at = run.offset + k * run.stride, last = at + bytes - 1;
      for (std::int64_t e = element_at(at); e <= element_at(last); ++e)
        if (!operand_->writers->writer(static_cast<std::size_t>(e))) return e * dtype_.bytes();
    }
    return std::nullopt;
  }
  know_some();
  const bool dense = run.stride == bytes || run.count == 1;
  const std::size_t size = static_cast<std::size_t>(bytes) *
                           (dense ? static_cast<std::size_t>(run.count) : std::size_t(1));
  for (std::int64_t k = 0; k < (dense ? 1 : run.count); ++k) {
    const std::uint8_t* from = known_bytes_.data() + run.offset + k * run.stride;
    if (const void* gap = std::memchr(from, 0, size))
      return static_cast<const std::uint8_t*>(gap) - known_bytes_.data();
  }
  return std::nullopt;
}

bool Window::knows_all(std::span<const std::int64_t> offsets, int bytes) {
  know_some();
  bool all = true;
  with_size(bytes, [&]<class T>() {
    constexpr T known = static_cast<T>(0x0101010101010101);
    for (const std::int64_t offset : offsets) {
      T found;
      std::memcpy(&found, known_bytes_.data() + offset, sizeof found);
      all = all && found == known;
    }
  });
  return all;
}

// ---- what other programs may see

std::int64_t Window::element_between_gaps(std::int64_t offset) const {
  std::int64_t rest = offset / dtype_.bytes(), number = 0;
  std::vector<std::size_t> by_stride(shape_.size());
  std::iota(by_stride.begin(), by_stride.end(), std::size_t(0));
  std::ranges::stable_sort(by_stride, std::greater(),
                           [&](std::size_t d) { return operand_->strides[d]; });
  const std::vector<std::int64_t> numbers = dense_strides(operand_->shape, 1);
  for (const std::size_t d : by_stride) {
    if (operand_->shape[d] == 1) continue;
    number += rest / operand_->strides[d] * numbers[d];
    rest %= operand_->strides[d];
  }
  return number;
}

void Window::wrote_array(std::int64_t offset, int bytes, graph::ValueId store) {
  if (!stored_) return;
  const std::int64_t first = element_at(offset), last = element_at(offset + bytes - 1);
  for (std::int64_t e = first; e <= last; ++e) {
    const std::optional<Clash> found = record(e, 1, store);
    if (!clash_) clash_ = found;
    if (operand_->readers != nullptr && !clash_) clash_ = find_readers(e, 1, store);
  }
}

void Window::read_array(const Run& run, int bytes, graph::ValueId load) {
  const race::Write mine{program_, graph::index(load)};
  for (std::int64_t k = 0; k < run.count; ++k) {
    const std::int64_t at = run.offset + k * run.stride;
    for (std::int64_t e = element_at(at); e <= element_at(at + bytes - 1); ++e) {
      const auto element = static_cast<std::size_t>(e);
      operand_->readers->record(element, mine);
      const auto write = operand_->writers->writer(element);
      if (write && write->program != program_ && !clash_)
        clash_ = Clash{{element, *write, mine}, false, true};
    }
  }
}

void Window::read(const Run& run, int bytes, graph::ValueId load) {
  if (is_array()) return read_array(run, bytes, load);
  if (written_ == Written::whole) return;  // the program's own
  if (reads_.empty()) reads_.resize(static_cast<std::size_t>(count_));
  was_read_ = true;
  const std::uint64_t mine = stamp(load);
  const int size = dtype_.bytes();
  for (std::int64_t k = 0; k < run.count; ++k) {
    const std::int64_t at = run.offset + k * run.stride;
    for (std::int64_t e = at / size; e <= (at + bytes - 1) / size; ++e)
      if (stamps_.empty() || !is_stamped(e)) reads_[static_cast<std::size_t>(e)] = mine;
  }
}

std::optional<Clash> Window::close_reads() {
  if (!was_read_) return std::nullopt;
  was_read_ = false;
  std::optional<Clash> clash;
  const int size = dtype_.bytes();
  for_each_row([&](std::int64_t from, std::int64_t, std::int64_t first, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      const std::uint64_t read = reads_[static_cast<std::size_t>(from / size + k)];
      if (read >> 32 != epoch_) continue;
      const race::Write mine{program_, static_cast<std::uint32_t>(read)};
      const auto element = static_cast<std::size_t>(first + k);
      operand_->readers->record(element, mine);
      const auto write = operand_->writers->writer(element);
      if (write && write->program != program_ && !clash)
        clash = Clash{{element, *write, mine}, false, true};
    }
  });
  return clash;
}

std::optional<Clash> Window::find_readers(std::int64_t first, std::int64_t count,
                                          graph::ValueId store) const {
  for (std::int64_t k = first; k < first + count; ++k)
    if (const auto read = operand_->readers->other(static_cast<std::size_t>(k), program_))
      return Clash{{static_cast<std::size_t>(k), *read, {program_, graph::index(store)}}, true};
  return std::nullopt;
}

// Programs that update an element do not clash over it.
bool Window::is_update(std::uint32_t tag) const {
  const graph::Op op = operand_->graph->insts[tag].op;
  return op == graph::Op::Atomic || op == graph::Op::ReduceToGlobal;
}

std::optional<Clash> Window::record(std::int64_t first, std::int64_t n, graph::ValueId by) const {
  const bool updates = is_update(graph::index(by));
  std::optional<Clash> clash;
  for (std::int64_t k = 0; k < n && !clash; k += updates ? 1 : n) {
    const auto found = operand_->writers->record(static_cast<std::size_t>(first + k),
                                                 static_cast<std::size_t>(updates ? 1 : n),
                                                 {program_, graph::index(by)});
    if (found && !(updates && is_update(found->first.tag))) clash = Clash{*found};
  }
  return clash;
}

std::optional<Clash> Window::close() {
  std::optional<Clash> clash = close_reads();
  if (!stored_ || written_ == Written::nothing) return clash;
  const int size = dtype_.bytes();
  const std::int64_t last = shape_.empty() ? size : operand_->strides.back() * size;
  const auto store = [&](std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t n,
                         graph::ValueId by) {
    const std::optional<Clash> found = record(first, n, by);
    if (!clash) clash = found;
    if (operand_->readers != nullptr && !clash) clash = find_readers(first, n, by);
    copy_run(operand_->data + to, last, contents_.get() + from, size, n, size);
  };
  for_each_row([&](std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t n) {
    if (written_ == Written::whole) {
      store(from, to, first, n, whole_store_);
      return;
    }
    const std::int64_t begin = from / size;
    for (std::int64_t k = std::max<std::int64_t>(0, first_written_ - begin);
         k < n && begin + k <= last_written_;) {
      if (!is_stamped(begin + k)) {
        ++k;
        continue;
      }
      const std::uint64_t stamp = stamps_[static_cast<std::size_t>(begin + k)];
      std::int64_t end = k + 1;
      while (end < n && stamps_[static_cast<std::size_t>(begin + end)] == stamp) ++end;
      store(from + k * size, to + k * last, first + k, end - k,
            graph::ValueId{static_cast<std::uint32_t>(stamp)});
      k = end;
    }
  });
  stored_by_ = program_;
  written_ = Written::nothing;
  return clash;
}

}  // namespace palladium::interpreter
