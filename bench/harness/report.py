"""The table for people and the verdicts."""

from .servers import KAAS


def verdicts(targets, medians):
    """(target, kaas, other or None, met) for each target whose parties were measured."""
    found = []
    for target in targets:
        if KAAS not in medians or (target.other and target.other not in medians):
            continue
        kaas = medians[KAAS][target.metric.key]
        other = medians[target.other][target.metric.key] if target.other else None
        found.append((target, kaas, other, target.met(kaas, other)))
    return found


def verdict_word(target, met):
    if target.aim:
        return "reached" if met else "not yet"
    return "pass" if met else "FAIL"


def row_table(row, measured):
    medians = measured["medians"]
    names = list(medians)
    lines = [row.title]
    widths = [max(len(name), 12) for name in names]
    head = "  " + " " * 18 + "  ".join(name.rjust(width) for name, width in zip(names, widths))
    lines.append(head)
    for metric in row.metrics:
        cells = [f"{medians[name][metric.key]:,.{metric.digits}f}".rjust(width)
                 for name, width in zip(names, widths)]
        lines.append(f"  {metric.label:<18}" + "  ".join(cells))
    if KAAS in medians:
        for metric in row.metrics:
            kaas = medians[KAAS][metric.key]
            ratios = ", ".join(f"{kaas / medians[name][metric.key]:.2f} of {name}"
                               for name in names if name != KAAS and medians[name][metric.key])
            lines.append(f"  {metric.label:<18}kaas: {ratios}")
    other = max(one["other_cpu_s"] / one["seconds"] for one in medians.values())
    lines.append(f"  others used {other:.2f} cores; {measured['repeated']} rounds repeated, "
                 f"{measured['noisy']} still noisy")
    lines += verdict_lines(row.targets, medians)
    return "\n".join(lines)


def verdict_lines(targets, medians, name=""):
    lines = []
    for target, kaas, other, met in verdicts(targets, medians):
        against = f" of {other:,.{target.metric.digits}f}" if other is not None else ""
        lines.append(f"  {verdict_word(target, met):<8}{name}{target.metric.label} {target.text()}: "
                     f"{kaas:,.{target.metric.digits}f}{against}")
    return lines


def failed(targets, medians):
    return any(not met and not target.aim for target, _, _, met in verdicts(targets, medians))
