#include "verify/postgres/shared_snapshot.hpp"

namespace muniment::verify {

Result<SharedSnapshot> SharedSnapshot::take(const std::string& uri) {
  ASSIGN_OR_RETURN(Connection holder, Connection::open(uri));
  RETURN_IF_ERROR(holder.begin());
  ASSIGN_OR_RETURN(std::string name, holder.export_snapshot());
  return SharedSnapshot(uri, std::move(holder), std::move(name));
}

Result<Connection> SharedSnapshot::join() const {
  ASSIGN_OR_RETURN(Connection connection, Connection::open(uri_));
  RETURN_IF_ERROR(connection.begin(name_));
  return connection;
}

Result<Connection> SharedSnapshot::outside() const {
  ASSIGN_OR_RETURN(Connection connection, Connection::open(uri_));
  RETURN_IF_ERROR(connection.begin());
  return connection;
}

}  // namespace muniment::verify
