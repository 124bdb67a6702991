// Starts and stops the parts of retrieval.
#include "retrieval/service.hpp"

namespace muniment::retrieval {

Result<std::unique_ptr<Service>> Service::start(ServiceOptions options, const Surroundings& around) {
  ASSIGN_OR_RETURN(std::unique_ptr<SearchClient> search, SearchClient::start(options.search));
  std::unique_ptr<Service> service(new Service(options, std::move(search), around));
  if (!options.shared_cache.address.empty()) {
    ASSIGN_OR_RETURN(service->shared_cache_, SharedCache::open(std::move(options.shared_cache)));
    service->documents_.on_erased = [cache = service->shared_cache_.get()] { cache->forget_all(); };
  }
  if (!options.answer_model.url.empty())
    service->answer_model_ = std::make_unique<ModelDrafter>(std::move(options.answer_model));
  service->documents_.look_back();
  service->documents_.start();
  service->trainer_.start();
  service->indexer_.start();
  return service;
}

Service::Service(const ServiceOptions& options, std::unique_ptr<SearchClient> search, const Surroundings& around)
    : documents_({options.place}, around.tail, around.files),
      trainer_(options.place, around.clock, around.appender, around.runs, documents_, around.files),
      search_(std::move(search)),
      indexer_(options.place, documents_, around.files, *search_, trainer_),
      retriever_(options.retriever, *search_, documents_, indexer_, around.files) {}

Service::~Service() { stop(); }

void Service::stop() {
  trainer_.stop();
  documents_.stop();
  indexer_.stop();
  search_->stop();
}

}  // namespace muniment::retrieval
