#include "telemetry/prometheus.h"

#include "base/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace kaas::telemetry {
namespace {

using base::metrics::Histogram;
using base::metrics::Labels;
using base::metrics::Registry;

/// Backslash and newline are written as escapes; in a label's value so is the quote that would end
/// it.
void append_escaped(std::string& text, std::string_view value, bool quoted) {
    for (char c : value) {
        if (c == '\n') {
            text += "\\n";
        } else {
            if (c == '\\' || (quoted && c == '"')) text += '\\';
            text += c;
        }
    }
}

const char* type_name(Registry::Kind kind) {
    switch (kind) {
        case Registry::Kind::kCounter: return "counter";
        case Registry::Kind::kGauge: return "gauge";
        case Registry::Kind::kHistogram: return "histogram";
    }
    return "untyped";
}

/// Name and labels of a line, and the space before its value. `bound` is a histogram's `le`.
void append_series(std::string& text, std::string_view name, const char* suffix,
                   const Labels& labels, std::string_view bound = {}) {
    text.append(name).append(suffix);
    char before = '{';
    for (const auto& [label, value] : labels) {
        text.append(1, before).append(label).append("=\"");
        append_escaped(text, value, true);
        text += '"';
        before = ',';
    }
    if (!bound.empty()) {
        text.append(1, before).append("le=\"").append(bound).append("\"");
        before = ',';
    }
    text += before == '{' ? " " : "} ";
}

void append_value(std::string& text, double value) {
    if (std::isnan(value)) {
        text += "NaN\n";
    } else if (std::isinf(value)) {
        text += value > 0 ? "+Inf\n" : "-Inf\n";
    } else {
        fmt::format_to(std::back_inserter(text), "{}\n", value);
    }
}

void append_value(std::string& text, std::uint64_t value) {
    fmt::format_to(std::back_inserter(text), "{}\n", value);
}

void append_value(std::string& text, std::int64_t value) {
    fmt::format_to(std::back_inserter(text), "{}\n", value);
}

void append_histogram(std::string& text, const std::string& name, const Labels& labels,
                      const Histogram& histogram) {
    auto counts = histogram.counts();
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < Histogram::kBoundsUs.size(); ++i) {
        below += counts[i];
        auto seconds = static_cast<double>(Histogram::kBoundsUs[i]) / 1e6;
        append_series(text, name, "_bucket", labels, fmt::format("{}", seconds));
        append_value(text, below);
    }
    below += counts.back();
    append_series(text, name, "_bucket", labels, "+Inf");
    append_value(text, below);
    append_series(text, name, "_sum", labels);
    append_value(text, static_cast<double>(histogram.sum_us()) / 1e6);
    append_series(text, name, "_count", labels);
    append_value(text, below);
}

void append_family(std::string& text, const std::string& name, const Registry::Family& family) {
    text.append("# HELP ").append(name).append(" ");
    append_escaped(text, family.help, false);
    text.append("\n# TYPE ").append(name).append(" ").append(type_name(family.kind)).append("\n");
    for (const auto& [labels, series] : family.series) {
        if (series.histogram) {
            append_histogram(text, name, labels, *series.histogram);
            continue;
        }
        append_series(text, name, "", labels);
        if (series.counter) {
            append_value(text, series.counter->value());
        } else if (series.gauge) {
            append_value(text, series.gauge->value());
        } else {
            append_value(text, series.sample());
        }
    }
}

}  // namespace

std::string prometheus_text(const Registry& registry) {
    std::string text;
    registry.visit([&text](const std::string& name, const Registry::Family& family) {
        if (!family.series.empty()) append_family(text, name, family);
    });
    return text;
}

}  // namespace kaas::telemetry
