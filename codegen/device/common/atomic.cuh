// What an atomic access orders, and for whom.

namespace pl {

enum Order : i32 { relaxed, acquire, release, acq_rel };
enum Scope : i32 { block, cluster, gpu, system_scope };

}  // namespace pl
