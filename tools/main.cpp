// The command line tool: reads what is asked for and hands it to a command.
#include <CLI/CLI.hpp>

#include <exception>
#include <functional>
#include <string>

#include "palladium/error.hpp"
#include "palladium/version.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace palladium::tools {
namespace {

constexpr int failure = 1;
constexpr int bad_usage = 2;

class Commands {
 public:
  Commands() : app_("Kernels of Palladium: what this machine can run, and what becomes of them.") {
    app_.name("palladium");
    app_.set_version_flag("--version", std::string("palladium ") + version_string() +
                                           "\ntext digest " + text_digest());
    app_.require_subcommand(1);

    auto* doctor = command(app_, "doctor", "What kernels need: found, or how to get it", doctor_,
                           tools::doctor);
    add_json(doctor, doctor_.json);

    auto* list = command(app_, "list", "The shipped kernels", list_, tools::list);
    add_json(list, list_.json);

    auto* run = command(app_, "run", "Run a shipped kernel on .npy files", run_, tools::run);
    run->add_option("NAME", run_.kernel, "As `list` shows it")->required();
    files(run, "--in", run_.inputs, "An input, once for each in order");
    files(run, "--out", run_.outputs, "Where an output goes");
    run->add_option("--target", run_.target, "cuda, interpreter or emulator");

    auto* show =
        command(app_, "show", "What becomes of a shipped or recorded kernel", show_, tools::show);
    show->add_option("NAME", show_.kernel, "As `list` shows it, MANIFEST.json, or MANIFEST.json#3")
        ->required();
    show->add_option("--arch", show_.arch, "sm_75 ... sm_100a (default: this GPU's, else sm_90a)");
    show->add_flag("--graph", show_.graph, "The kernel graph (default)");
    show->add_flag("--passes", show_.passes, "The program behind each pass of the compiler");
    show->add_option("--after", show_.after, "The program behind this pass, of each attempt");
    show->add_flag("--times", show_.times, "What each pass took");
    show->add_flag("--schedule", show_.schedule,
                   "Who waits for whom in an iteration, and whether they do so as they must");
    show->add_flag("--timeline", show_.timeline,
                   "Two iterations of its loops on a multiprocessor, in cycles: who does what, and "
                   "waits for what");
    show->add_option("--svg", show_.svg, "The timeline as a picture, to this file")
        ->type_name("FILE");
    show->add_option("--trace", show_.trace,
                     "The timeline as a trace that Perfetto opens, to this file")
        ->type_name("FILE");
    show->add_option("--measured", show_.measured, "A trace, beside the timeline")
        ->type_name("FILE");
    show->add_flag("--cuda", show_.cuda, "The emitted CUDA C++");
    show->add_flag("--ptx", show_.ptx, "What NVRTC makes of it");
    show->add_flag("--sass", show_.sass,
                   "Its machine code, with instructions by kind and loop; needs nvdisasm");
    show->add_flag("--resources", show_.resources, "Registers, shared memory, spills");
    show->add_flag("--report", show_.report,
                   "Sectors, bank conflicts and bytes of each access, instructions by kind, "
                   "registers, occupancy");
    add_json(show, show_.json);

    auto* warm =
        command(app_, "warm", "Compile shipped and recorded kernels into the cache; needs no GPU",
                warm_, tools::warm);
    warm->add_option("NAME", warm_.kernels, "As `list` shows them, or MANIFEST.json")->required();
    warm->add_option("--arch", warm_.archs,
                     "sm_90a,sm_100a,... (default: as recorded, else this GPU's, else sm_90a)")
        ->delimiter(',')
        ->allow_extra_args(false);
    warm->add_option("-j,--jobs", warm_.jobs, "Compiles at once (default: the number of cores)")
        ->check(CLI::Range(1, 1024));
    warm->add_flag("--any-size", warm_.any_size,
                   "Shipped kernels also as calls run them: of rows and depths up to the power of "
                   "two above those that `list` shows");
    warm->add_flag("--expect", warm_.expect,
                   "A kernel that is not what its .expect says has failed");
    add_json(warm, warm_.json);

    CLI::App* cache = app_.add_subcommand("cache", "The compiled kernels on disk");
    cache->require_subcommand(1);
    add_json(command(*cache, "list", "All of them", cache_list_, tools::cache_list),
             cache_list_.json);
    auto* entry = command(*cache, "show", "One of them", cache_show_, tools::cache_show);
    entry->add_option("KEY", cache_show_.key, "Its first digits are enough")->required();
    entry->add_flag("--cuda", cache_show_.cuda, "The emitted CUDA C++");
    entry->add_flag("--ptx", cache_show_.ptx, "What NVRTC made of it");
    add_json(entry, cache_show_.json);
    add_json(command(*cache, "stats", "How many, how large, and what is allowed", cache_stats_,
                     tools::cache_stats),
             cache_stats_.json);
    auto* verify =
        command(*cache, "verify", "Read and check all of them", cache_verify_, tools::cache_verify);
    verify->add_option("--recompile", cache_verify_.recompile,
                       "Share of them to compile again and compare, such as 5%");
    add_json(verify, cache_verify_.json);
    add_json(command(*cache, "prune", "Bring the cache within its bounds, remove left-over files",
                     cache_prune_, tools::cache_prune),
             cache_prune_.json);
    add_json(command(*cache, "clear", "Remove all of them", cache_clear_, tools::cache_clear),
             cache_clear_.json);
    auto* explain = command(*cache, "explain", "Why a kernel is not found: what differs in the key",
                            cache_explain_, tools::cache_explain);
    explain
        ->add_option("KERNEL", cache_explain_.first,
                     "A key's first digits, a shipped kernel, or MANIFEST.json#3")
        ->required();
    explain->add_option("OTHER", cache_explain_.second,
                        "A key's first digits (default: the nearest entry)");
    explain->add_option("--arch", cache_explain_.arch, "sm_75 ... sm_100a");
    add_json(explain, cache_explain_.json);
  }

  int execute(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
        return app_.exit(error);
      complain(what_is_wrong(error));
      note("see `palladium --help`, or --help behind a command");
      return bad_usage;
    }
    return chosen_();
  }

 private:
  /// The parser's words, but for a command that there is not: it only says that one is missing.
  std::string what_is_wrong(const CLI::ParseError& error) const {
    const CLI::App* last = &app_;
    while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
    if (last->get_require_subcommand_min() == 0) return error.what();
    std::string names;
    for (const CLI::App* each : last->get_subcommands([](const CLI::App*) { return true; }))
      names += (names.empty() ? "" : ", ") + each->get_name();
    const std::vector<std::string> rest = last->remaining();
    return (rest.empty() ? "which command?" : "no command is named '" + rest[0] + "';") +
           " there are " + names;
  }

  template <class Asked>
  CLI::App* command(CLI::App& parent, const char* name, const char* sentence, Asked& asked,
                    int (*function)(const Asked&)) {
    CLI::App* sub = parent.add_subcommand(name, sentence);
    sub->callback(
        [this, &asked, function] { chosen_ = [&asked, function] { return function(asked); }; });
    return sub;
  }
  static void add_json(CLI::App* command, bool& json) {
    command->add_flag("--json", json, "One JSON object on stdout");
  }
  static void files(CLI::App* command, const char* name, std::vector<std::string>& paths,
                    const char* meaning) {
    command->add_option(name, paths, meaning)
        ->required()
        ->allow_extra_args(false)
        ->type_name("FILE");
  }

  CLI::App app_;
  std::function<int()> chosen_;
  Doctor doctor_;
  List list_;
  Run run_;
  Show show_;
  Warm warm_;
  CacheList cache_list_;
  CacheShow cache_show_;
  CacheStats cache_stats_;
  CacheVerify cache_verify_;
  CachePrune cache_prune_;
  CacheClear cache_clear_;
  CacheExplain cache_explain_;
};

}  // namespace
}  // namespace palladium::tools

int main(int argc, char** argv) {
  using namespace palladium::tools;
  try {
    const int status = Commands().execute(argc, argv);
    return finish() ? status : failure;
  } catch (const std::exception& error) {
    complain(error.what());
    return failure;
  }
}
