// Barriers in shared memory that count arrivals and bytes.

namespace pl {

PL_FN void mbarrier_init(u32 bar, u32 count, PL_LINE) {
  detail::host.mbarrier_init(bar, count, line);
}

PL_FN void mbarrier_inval(u32 bar, PL_LINE) { detail::host.mbarrier_inval(bar, line); }

PL_FN void mbarrier_arrive(u32 bar, u32 count = 1, PL_LINE) {
  detail::host.mbarrier_arrive(bar, count, detail::Arrival::own, line);
}

PL_FN void mbarrier_arrive_cluster(u32 remote_bar, u32 count = 1, PL_LINE) {
  detail::host.mbarrier_arrive(remote_bar, count, detail::Arrival::remote_cluster_scope, line);
}

PL_FN void mbarrier_arrive_remote(u32 remote_bar, u32 count = 1, PL_LINE) {
  detail::host.mbarrier_arrive(remote_bar, count, detail::Arrival::remote_block_scope, line);
}

PL_FN void mbarrier_expect_tx(u32 bar, u32 bytes, PL_LINE) {
  detail::host.mbarrier_expect_tx(bar, bytes, false, line);
}

PL_FN void mbarrier_expect_tx_cluster(u32 remote_bar, u32 bytes, PL_LINE) {
  detail::host.mbarrier_expect_tx(remote_bar, bytes, true, line);
}

PL_FN void mbarrier_arrive_expect_tx(u32 bar, u32 bytes, PL_LINE) {
  mbarrier_expect_tx(bar, bytes, line);
  mbarrier_arrive(bar, 1, line);
}

PL_FN void mbarrier_arrive_expect_tx_cluster(u32 remote_bar, u32 bytes, PL_LINE) {
  mbarrier_expect_tx_cluster(remote_bar, bytes, line);
  mbarrier_arrive_cluster(remote_bar, 1, line);
}

PL_FN bool mbarrier_test_wait(u32 bar, u32 parity, PL_LINE) {
  return detail::host.mbarrier_wait(bar, parity, detail::Waiting::test, false, line);
}

PL_FN bool mbarrier_try_wait(u32 bar, u32 parity, PL_LINE) {
  return detail::host.mbarrier_wait(bar, parity, detail::Waiting::try_once, false, line);
}

PL_FN void mbarrier_wait(u32 bar, u32 parity, PL_LINE) {
  detail::host.mbarrier_wait(bar, parity, detail::Waiting::until, false, line);
}

PL_FN void mbarrier_wait_cluster(u32 bar, u32 parity, PL_LINE) {
  detail::host.mbarrier_wait(bar, parity, detail::Waiting::until, true, line);
}

}  // namespace pl
