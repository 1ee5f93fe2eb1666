// std.h and Asio, for the modules that own sockets.
#pragma once

#include "std.h"

#include <boost/asio.hpp>
