//===- CApi.cpp - The C interface: options and loading --------------------===//
//
// Part of Sardonyx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "sardonyx-c/sardonyx.h"
#include "sardonyx/Model/CTypes.h"
#include "sardonyx/Session/Session.h"

using namespace sardonyx;

struct sdx_options {
  SessionOptions options;
  sdx_log_function log = nullptr;
  void *logUser = nullptr;
};
sdx_options *sdx_options_create(void) { return new sdx_options; }
void sdx_options_free(sdx_options *options) { delete options; }
void sdx_options_set_threads(sdx_options *options, unsigned threads) {
  options->options.intraOpThreads = threads;
}
void sdx_options_set_cache(sdx_options *options, int enabled,
                           const char *folder) {
  options->options.cache = enabled != 0;
  options->options.cacheDir = folder ? folder : "";
}

/// Sessions that were made before keep the set that they have.
static int addCustomOps(sdx_options *options, const char *path,
                        MaybeError (CustomOps::*read)(const std::string &),
                        sdx_error **error) {
  auto ops = std::make_shared<CustomOps>();
  if (options->options.customOps)
    ops->addAll(*options->options.customOps);
  if (MaybeError problem = ((*ops).*read)(path ? path : "")) {
    report(*problem, error);
    return 1;
  }
  options->options.customOps = std::move(ops);
  return 0;
}

int sdx_options_add_custom_ops_library(sdx_options *options, const char *path,
                                       sdx_error **error) {
  return addCustomOps(options, path, &CustomOps::addLibrary, error);
}
int sdx_options_add_custom_functions(sdx_options *options, const char *path,
                                     sdx_error **error) {
  return addCustomOps(options, path, &CustomOps::addFunctionsFile, error);
}
int sdx_options_add_custom_mlir(sdx_options *options, const char *path,
                                sdx_error **error) {
  return addCustomOps(options, path, &CustomOps::addMlirFile, error);
}

void sdx_options_set_numerics(sdx_options *options, sdx_numerics numerics) {
  static_assert(int(Numerics::Exact) == SDX_NUMERICS_EXACT &&
                int(Numerics::F32) == SDX_NUMERICS_F32 &&
                int(Numerics::Fast) == SDX_NUMERICS_FAST);
  options->options.numerics = Numerics(numerics);
}

void sdx_options_set_precision(sdx_options *options, sdx_precision precision) {
  static_assert(int(Precision::F32) == SDX_PRECISION_F32 &&
                int(Precision::TF32) == SDX_PRECISION_TF32 &&
                int(Precision::F16) == SDX_PRECISION_F16 &&
                int(Precision::BF16) == SDX_PRECISION_BF16 &&
                int(Precision::BF16x3) == SDX_PRECISION_BF16X3);
  options->options.precision = Precision(precision);
}
void sdx_options_set_memory_limit(sdx_options *options, int64_t bytes) {
  options->options.memoryLimit = bytes;
}
void sdx_options_set_cuda(sdx_options *options, int device, int64_t memoryLimit,
                          void *stream, int mayUseCpu) {
  DeviceOptions &asked = options->options.device;
  asked.cuda = true;
  asked.deviceId = device;
  asked.memoryLimit = memoryLimit;
  asked.userStream = stream;
  asked.mayUseCpu = mayUseCpu != 0;
}
void sdx_options_set_compile_timeout(sdx_options *options, double seconds) {
  options->options.compileTimeout = seconds;
}

void sdx_options_set_compile(sdx_options *options, sdx_compile compile) {
  static_assert(int(Compile::Wait) == SDX_COMPILE_WAIT &&
                int(Compile::Background) == SDX_COMPILE_BACKGROUND);
  options->options.compile = Compile(compile);
}

void sdx_options_set_cpu(sdx_options *options, const char *name) {
  options->options.cpu = name ? name : "";
}
void sdx_options_set_dimension(sdx_options *options, const char *name,
                               int64_t size) {
  options->options.dims[name] = size;
}
void sdx_options_add_output(sdx_options *options, const char *name) {
  options->options.outputs.push_back(name);
}
void sdx_options_set_log(sdx_options *options, sdx_log_function function,
                         void *user) {
  options->log = function;
  options->logUser = user;
}
void sdx_options_set_profile(sdx_options *options, int enabled) {
  options->options.profile = enabled != 0;
}

static sdx_session *wrap(Expected<std::shared_ptr<Session>> session,
                         const sdx_options *options, sdx_error **error) {
  if (!session) {
    report(session.error(), error);
    return nullptr;
  }
  auto *handle = new sdx_session(*session);
  handle->compiled = (*session).get();
  if (!options)
    return handle;
  handle->log = options->log;
  handle->logUser = options->logUser;
  tellWarnings(**session, options->log, options->logUser);
  return handle;
}

sdx_session *sdx_session_create(const char *path, const sdx_options *options,
                                sdx_error **error) {
  return wrap(Session::load(path ? path : "",
                            options ? options->options : SessionOptions()),
              options, error);
}

sdx_session *sdx_session_create_from_bytes(const void *data, size_t size,
                                           const sdx_options *options,
                                           sdx_error **error) {
  return wrap(Session::loadBytes(data, size,
                                 options ? options->options : SessionOptions()),
              options, error);
}

int sdx_session_wait_for_compile(sdx_session *session, double seconds,
                                 sdx_error **error) {
  if (!session->compiled)
    return 1;
  auto ended = session->compiled->waitForCompile(
      seconds < 0 ? std::nullopt : std::optional<double>(seconds));
  if (ended)
    return *ended;
  report(ended.error(), error);
  return -1;
}

static TensorRef refOf(const sdx_tensor &tensor) {
  TensorRef ref;
  ref.type = static_cast<ElementType>(tensor.type);
  ref.data = tensor.data;
  ref.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  return ref;
}

sdx_results *
sdx_session_run_named(sdx_session *session, const char *const *inputNames,
                      const sdx_tensor *inputs, size_t inputCount,
                      const char *const *outputNames, size_t outputCount,
                      const sdx_run_options *options, sdx_error **error) {
  // Another thread may free the handle meanwhile.
  std::shared_ptr<Runner> running = session->session;
  const sdx_log_function log = session->log;
  void *const logUser = session->logUser;
  std::vector<NamedInput> named;
  for (size_t i = 0; i < inputCount; ++i)
    named.push_back({inputNames[i] ? inputNames[i] : "", refOf(inputs[i])});
  std::vector<std::string> outputs;
  for (size_t i = 0; i < outputCount; ++i)
    outputs.push_back(outputNames[i] ? outputNames[i] : "");
  auto results = options ? runByName(*running, named, outputs, options->options)
                         : runByName(*running, named, outputs);
  tellWarnings(*running, log, logUser);
  if (!results) {
    report(results.error(), error);
    return nullptr;
  }
  if (outputs.empty())
    for (const ValueInfo &output : running->outputs())
      outputs.push_back(output.name);
  std::vector<Tensor> ordered;
  for (const std::string &name : outputs)
    ordered.push_back((*results)[name]);
  return new sdx_results(std::move(ordered));
}

size_t sdx_session_take_profile(sdx_session *session,
                                sdx_profile_function function, void *user) {
  if (!session->compiled)
    return 0;
  const Profile profile = session->compiled->takeProfile();
  for (size_t run = 0; run < profile.runs.size(); ++run)
    for (const ProfileEvent &event : profile.runs[run].events) {
      const ProfileSite &site = profile.sites[event.site];
      const sdx_profile_step step = {
          run,       site.kernel.c_str(), site.form.c_str(), event.begin,
          event.end, event.flops,         event.bytes};
      function(user, &step);
    }
  return profile.runs.size();
}

const char *sdx_version(void) { return SARDONYX_VERSION; }
