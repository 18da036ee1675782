// Arrays in and out of DLPack, against a library that counts its deletions.
#include "codegen/base/dlpack.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "palladium/array.hpp"

using namespace palladium;
using Catch::Matchers::ContainsSubstring;

namespace {

/// What PyTorch hands out, for a matrix of floats.
template <class Managed>
struct Foreign {
  Managed tensor = {};
  std::vector<float> data = std::vector<float>(12);
  std::int64_t shape[2] = {3, 4};
  std::int64_t strides[2] = {4, 1};
  int* deleted;

  explicit Foreign(int& count) : deleted(&count) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
    tensor.dl_tensor = {data.data(), {dlpack::cpu, 0}, 2, {dlpack::floating, 32, 1},
                        shape,       strides,          0};
    tensor.manager_ctx = this;
    tensor.deleter = [](Managed* self) {
      auto* f = static_cast<Foreign*>(self->manager_ctx);
      ++*f->deleted;
      delete f;
    };
  }
};

}  // namespace

// dlpack.h of version 1.0 on a 64-bit machine.
static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, dtype) == 20 &&
              offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, flags) == 24 &&
              offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

TEST_CASE("a tensor taken over is viewed, and deleted once with the last handle") {
  int deleted = 0;
  {
    Array kept;
    {
      const Array a = Array::from_dlpack(&(new Foreign<DLManagedTensor>(deleted))->tensor);
      CHECK(a.shape() == Shape{3, 4});
      CHECK(a.dtype() == f32);
      CHECK(a.device() == Device::cpu());
      CHECK(a.values<float>()[7] == 7);
      kept = a;
    }
    CHECK(deleted == 0);
    CHECK(kept.values<float>()[11] == 11);
  }
  CHECK(deleted == 1);
}

TEST_CASE("null strides mean dense, and the byte offset is added") {
  int deleted = 0;
  auto* foreign = new Foreign<DLManagedTensor>(deleted);
  foreign->tensor.dl_tensor.strides = nullptr;
  foreign->tensor.dl_tensor.shape[0] = 2;
  foreign->tensor.dl_tensor.byte_offset = 16;
  const Array a = Array::from_dlpack(&foreign->tensor);
  CHECK(a.is_dense());
  CHECK(a.values<float>()[0] == 4);
}

TEST_CASE("a transposed tensor keeps its strides") {
  int deleted = 0;
  auto* foreign = new Foreign<DLManagedTensorVersioned>(deleted);
  foreign->tensor.version = {1, 2};
  foreign->strides[0] = 1;
  foreign->strides[1] = 3;
  const Array a = Array::from_dlpack(&foreign->tensor);
  CHECK(!a.is_dense());
  CHECK(a.copy().values<float>()[1] == 3);
}

TEST_CASE("a read-only tensor makes a read-only array") {
  int deleted = 0;
  auto* foreign = new Foreign<DLManagedTensorVersioned>(deleted);
  foreign->tensor.version = {1, 0};
  foreign->tensor.flags = dlpack::flag_read_only;
  const Array a = Array::from_dlpack(&foreign->tensor);
  CHECK(a.is_read_only());
  CHECK_THROWS_WITH(a.to_dlpack(), ContainsSubstring("versioned"));
  DLManagedTensorVersioned* again = a.to_dlpack_versioned();
  CHECK(again->flags == dlpack::flag_read_only);
  again->deleter(again);
}

TEST_CASE("what cannot be viewed is refused and stays the caller's") {
  int deleted = 0;
  auto* foreign = new Foreign<DLManagedTensorVersioned>(deleted);
  DLManagedTensorVersioned& t = foreign->tensor;
  t.version = {2, 0};
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("DLPack 2.0"));
  t.version = {1, 0};
  t.dl_tensor.dtype = {dlpack::floating, 8, 1};
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("8 bits"));
  t.dl_tensor.dtype = {dlpack::signed_int, 4, 1};
  t.flags = dlpack::flag_padded;
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("4 bits have a byte each"));
  t.flags = 0;
  t.dl_tensor.shape[1] = 3;
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("the last extent is even"));
  t.dl_tensor.shape[1] = 4;
  t.dl_tensor.dtype = {dlpack::floating, 32, 4};
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("4 lanes"));
  t.dl_tensor.dtype = {dlpack::floating, 32, 1};
  t.dl_tensor.device.device_type = 8;
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("device type 8"));
  t.dl_tensor.device.device_type = dlpack::cpu;
  t.dl_tensor.ndim = 9;
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("9"));
  t.dl_tensor.ndim = 2;
  t.dl_tensor.byte_offset = 2;
  CHECK_THROWS_WITH(Array::from_dlpack(&t), ContainsSubstring("aligned"));
  CHECK_THROWS_AS(Array::from_dlpack(static_cast<DLManagedTensor*>(nullptr)), CompileError);
  CHECK(deleted == 0);
  t.deleter(&t);
  CHECK(deleted == 1);
}

TEST_CASE("an exported tensor keeps the memory alive and comes back as the same array") {
  DLManagedTensor* tensor = nullptr;
  const void* data = nullptr;
  {
    const Array a = Array::of<std::int16_t>({1, 2, 3, 4, 5, 6}).reshape({2, 3});
    data = a.data();
    tensor = a.to_dlpack();
  }
  CHECK(tensor->dl_tensor.dtype.code == dlpack::signed_int);
  CHECK(tensor->dl_tensor.dtype.bits == 16);
  CHECK(tensor->dl_tensor.strides[0] == 3);
  const Array back = Array::from_dlpack(tensor);
  CHECK(back.data() == data);
  CHECK(back.values<std::int16_t>()[5] == 6);
}

TEST_CASE("every dtype survives the way out and in") {
  for (const DType dtype :
       {bool_, i4, i8, i16, i32, i64, u4, u8, u16, u32, u64, f8e4m3, f8e5m2, f16, bf16, f32, f64}) {
    const Array a = Array::zeros({4}, dtype);
    CHECK(Array::from_dlpack(a.to_dlpack_versioned()).dtype() == dtype);
  }
}

TEST_CASE("a tensor whose extents or strides reach beyond memory stays its library's") {
  int deleted = 0;
  const auto refused = [&](std::int64_t rows, std::int64_t stride) {
    auto* foreign = new Foreign<DLManagedTensor>(deleted);
    foreign->shape[0] = rows;
    foreign->strides[0] = stride;
    CHECK_THROWS_AS(Array::from_dlpack(&foreign->tensor), CompileError);
    CHECK(deleted == 0);
    delete foreign;
  };
  constexpr std::int64_t far = std::int64_t{1} << 62;
  refused(far, 4);
  refused(far, 0);
  refused(3, far);
  refused(3, INT64_MIN);
}
