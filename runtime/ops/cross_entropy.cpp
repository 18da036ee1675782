#include "palladium/ops/cross_entropy.hpp"

#include <limits>

#include "runtime/ops/rows.hpp"

namespace palladium::ops {

Kernel cross_entropy(CrossEntropyOptions options) {
  return pallas_call([=](ShapeDtype logits, ShapeDtype labels) {
    require_floats("cross_entropy", "logits", logits);
    if (!labels.dtype.is_integer())
      throw CompileError(std::string("cross_entropy: labels are of ") + labels.dtype.name() +
                         "; integers are needed");
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
      throw CompileError("cross_entropy: label_smoothing is " +
                         std::to_string(options.label_smoothing) + "; 0 to 1 is needed");
    const Rows rows(logits);
    if (rows.most == 0 && rows.m != 0)
      throw CompileError("cross_entropy: logits have no columns, and so there is no class");
    const auto [count] = labels.shape.unpack<1>();
    require_equal(count, rows.m);

    const auto body = [=](Ref x, Ref labels, Ref o) {
      const Value v = f32(x[_]), label = i64(labels[_]);
      const Value is_class = (label >= 0) & (label < length(x, 1));
      const Value top = max(v, {.axis = 1, .keepdims = true});
      const Value total = sum(exp(v - top), {.axis = 1});
      Value chosen = f32(x[{iota(i32, {rows.rows}), i32(where(is_class, label, 0))}]);
      if (options.label_smoothing != 0)
        chosen =
            chosen * (1 - options.label_smoothing) + mean(v, {.axis = 1}) * options.label_smoothing;
      const Value loss = log(total) + (squeeze(top, 1) - chosen);
      const double none = std::numeric_limits<double>::quiet_NaN();
      o[_] = where(label == options.ignore_index, 0, where(is_class, loss, none));
    };
    return Call{body,
                {.name = "cross_entropy",
                 .out_type = {{rows.m}, f32},
                 .grid = rows.grid(),
                 .in_specs = {rows.blocks(), rows.elements()},
                 .out_specs = {rows.elements()},
                 .compiler_params = {.expect = {.spills = 0}}}};
  });
}

}  // namespace palladium::ops
