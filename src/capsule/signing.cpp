#include "capsule/signing.hpp"

#include "base/json/json.hpp"
#include "capsule/file.hpp"

namespace muniment::capsule {

Result<Checkpoint> sign(const std::string& path, const NoteSigner& signer) {
  ASSIGN_OR_RETURN(const auto file, CapsuleFile::open(path, Access::write));
  RETURN_IF_ERROR(file->verify());
  Checkpoint checkpoint;
  checkpoint.origin = "muniment-capsule/" + to_hex(file->header().id);
  checkpoint.size = static_cast<std::int64_t>(file->state().frames);
  checkpoint.root = file->state().chain;
  const Note note{checkpoint.text(), {signer.sign(checkpoint.text())}};
  json::Writer about;
  about.begin_object().member("key", signer.verifier().text()).member("frames", checkpoint.size).end_object();
  RETURN_IF_ERROR(file->append_now(FrameType::signature, about.text(), note.signed_text()));
  RETURN_IF_ERROR(file->commit());
  return checkpoint;
}

}  // namespace muniment::capsule
