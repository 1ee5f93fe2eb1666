import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Prints what a broker answers to DescribeConfigs, one config a line, sorted:
 * resource, name, type, value, source, ro|rw, secret|open, documented|-, synonyms (source:name=value; ...) or -.
 * Usage: DescribeConfigs BOOTSTRAP TYPE/NAME...
 */
public class DescribeConfigs {
    public static void main(String[] args) throws Exception {
        List<ConfigResource> resources = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            String[] parts = args[i].split("/", 2);
            resources.add(new ConfigResource(ConfigResource.Type.valueOf(parts[0]), parts[1]));
        }
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            var answers = admin.describeConfigs(resources, options).all().get();
            for (ConfigResource resource : resources) {
                answers.get(resource).entries().stream()
                    .sorted(Comparator.comparing(ConfigEntry::name))
                    .forEach(entry -> print(resource, entry));
            }
        }
    }

    private static void print(ConfigResource resource, ConfigEntry entry) {
        String synonyms = entry.synonyms().stream()
            .map(s -> s.source() + ":" + s.name() + "=" + text(s.value()))
            .collect(Collectors.joining("; "));
        System.out.println(String.join("\t", resource.type() + "/" + resource.name(), entry.name(),
            entry.type().name(), text(entry.value()), entry.source().name(),
            entry.isReadOnly() ? "ro" : "rw", entry.isSensitive() ? "secret" : "open",
            entry.documentation() == null ? "-" : "documented", synonyms.isEmpty() ? "-" : synonyms));
    }

    private static String text(String value) {
        return value == null ? "<null>" : value;
    }
}
