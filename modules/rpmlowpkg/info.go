package rpmlowpkg

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/lazyre"
	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/pkgversion"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/sorting"
	"github.com/brine-salt/brine/modules"
)

// attribute is something that rpm can be asked for.
type attribute struct{ name, format string }

func attributes(size string) []attribute {
	return []attribute{
		{"name", `name: %{NAME}\n`},
		{"relocations", `relocations: %|PREFIXES?{[%{PREFIXES} ]}:{(not relocatable)}|\n`},
		{"version", `version: %{VERSION}\n`},
		{"vendor", `vendor: %{VENDOR}\n`},
		{"release", `release: %{RELEASE}\n`},
		{"epoch", `%|EPOCH?{epoch: %{EPOCH}\n}|`},
		{"build_date_time_t", `build_date_time_t: %{BUILDTIME}\n`},
		{"build_date", `build_date: %{BUILDTIME}\n`},
		{"install_date_time_t", `install_date_time_t: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\n`},
		{"install_date", `install_date: %|INSTALLTIME?{%{INSTALLTIME}}:{(not installed)}|\n`},
		{"build_host", `build_host: %{BUILDHOST}\n`},
		{"group", `group: %{GROUP}\n`},
		{"source_rpm", `source_rpm: %{SOURCERPM}\n`},
		{"size", `size: ` + size + `\n`},
		{"arch", `arch: %{ARCH}\n`},
		{"license", `%|LICENSE?{license: %{LICENSE}\n}|`},
		{"signature", `signature: %|DSAHEADER?{%{DSAHEADER:pgpsig}}:{%|RSAHEADER?{%{RSAHEADER:pgpsig}}:` +
			`{%|SIGGPG?{%{SIGGPG:pgpsig}}:{%|SIGPGP?{%{SIGPGP:pgpsig}}:{(none)}|}|}|}|\n`},
		{"packager", `%|PACKAGER?{packager: %{PACKAGER}\n}|`},
		{"url", `%|URL?{url: %{URL}\n}|`},
		{"summary", `summary: %{SUMMARY}\n`},
		{"edition", `edition: %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\n`},
	}
}

// queryFormat asks for the wanted attributes, nil for all; the description comes last.
func queryFormat(wanted []string, size string) (string, error) {
	all := attributes(size)
	var b strings.Builder
	if wanted == nil {
		for _, a := range all {
			b.WriteString(a.format)
		}
	}
	ask := func(name string) {
		for _, a := range all {
			if a.name == name {
				b.WriteString(a.format)
			}
		}
	}
	for _, name := range wanted {
		ask(name)
	}
	if b.Len() == 0 {
		return "", modules.Errorf("No valid attributes found.")
	}
	for _, name := range []string{"name", "edition"} {
		if wanted != nil && !slices.Contains(wanted, name) {
			ask(name)
		}
	}
	if wanted == nil || slices.Contains(wanted, "description") {
		b.WriteString(`description:\n%{DESCRIPTION}\n`)
	}
	return b.String() + `-----\n`, nil
}

var dashes = lazyre.Regexp{Expr: `---+`}

func info(ctx context.Context, c *modules.Call) (any, error) {
	tags, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: []string{"rpm", "--querytags"}})
	if err != nil {
		return nil, err
	}
	size := "%{SIZE}"
	if slices.Contains(tags.Lines(), "LONGSIZE") {
		size = "%{LONGSIZE}"
	}
	var wanted []string
	if v := c.Keywords["attr"]; pytext.Truth(v) {
		wanted = strings.Split(pytext.Str(v), ",")
	}
	format, err := queryFormat(wanted, size)
	if err != nil {
		return nil, err
	}
	cmd := command(c, "-qa")
	if len(c.Extra) > 0 {
		cmd = append(command(c, "-q"), pkglist.Names(c)...)
	}
	out, err := saltcmd.Run(ctx, c, saltcmd.Command{Args: append(cmd, "--queryformat", format), Env: []string{"TZ=UTC"}, IgnoreRetcode: true})
	if err != nil {
		return nil, err
	}
	var list []map[string]any
	for _, part := range dashes.Get().Split(out.Stdout, -1) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if pkg := parseInfo(part, wanted == nil || slices.Contains(wanted, "description")); pkg != nil {
			list = append(list, pkg)
		}
	}
	return newest(list, pytext.Truth(c.Keywords["all_versions"]))
}

// parseInfo parses rpm's output about one package. It returns nil if the package has no name.
func parseInfo(text string, describe bool) map[string]any {
	lines := strings.Split(text, "\n")
	if strings.HasPrefix(strings.ToLower(lines[len(lines)-1]), "distribution") {
		lines = lines[:len(lines)-1]
	}
	pkg := map[string]any{}
	description := ""
	for i, line := range lines {
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			continue
		}
		if key == "description" {
			description = strings.Join(lines[i+1:], "\n")
			break
		}
		switch key {
		case "build_date", "install_date", "build_date_time_t", "install_date_time_t":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			if strings.HasSuffix(key, "_t") {
				pkg[key] = n
			} else {
				pkg[key] = time.Unix(n, 0).UTC().Format("2006-01-02T15:04:05Z")
			}
		default:
			if value != "" {
				pkg[key] = value
			}
		}
	}
	if describe {
		pkg["description"] = description
	}
	if pkg["name"] == nil {
		return nil
	}
	return pkg
}

// newest returns the newest version of each package, or all versions if all is set.
func newest(list []map[string]any, all bool) (any, error) {
	sorting.Stable(list, func(a, b map[string]any) int {
		n, _ := pkgversion.Loose(pytext.Str(a["edition"]), pytext.Str(b["edition"]))
		return n
	})
	slices.Reverse(list)
	ret := map[string]any{}
	for _, pkg := range list {
		name := pytext.Str(pkg["name"])
		delete(pkg, "name")
		if strings.HasPrefix(name, "gpg-pubkey") {
			continue
		}
		have, seen := ret[name]
		switch {
		case all:
			versions, _ := have.([]any)
			ret[name] = append(versions, pkg)
		case !seen:
			delete(pkg, "edition")
			ret[name] = pkg
		}
	}
	return ret, nil
}
