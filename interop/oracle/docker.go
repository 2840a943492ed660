package oracle

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/testkit/testserver"
)

// LendDocker starts a Docker daemon for both sides of the cases that follow, or puts a tape in its place in a replay: they
// find it by DOCKER_HOST, and Docker's configuration in an empty directory.
func LendDocker(t *testing.T, servers *Servers) {
	t.Helper()
	socket := ""
	if !servers.Replay {
		socket = testserver.Docker(t)
	}
	t.Setenv("DOCKER_HOST", "unix://"+servers.Lend("@DOCKER@", "unix", socket))
	t.Setenv("DOCKER_CONFIG", filepath.Join(t.TempDir(), "docker"))
	if servers.Replay {
		return
	}
	t.Setenv("BRINE_DOCKER", filepath.Dir(socket)) // of which fresh-docker empties the registries
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, freshName), []byte(freshDocker), 0o755); err != nil {
		t.Fatal(err)
	}
	// Stock runs the program docker; it must be the one of the daemon's package.
	t.Setenv("PATH", bin+string(os.PathListSeparator)+"/usr/bin"+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// freshName is the name of freshDocker, which is not there in a replay.
const freshName = "fresh-docker"

// freshDocker is the program that setups of cases call: it leaves nothing but the image tiny:1, in the registries neither, and starts
// containers with the names that it is given.
const freshDocker = `#!/bin/sh
exec >/dev/null
docker ps -aq | xargs -r docker rm -f
for net in $(docker network ls -q -f type=custom); do
	docker network inspect -f '{{range .Containers}}{{.Name}} {{end}}' $net | xargs -r -n1 docker network disconnect -f $net
	docker network rm $net
done
docker volume ls -q | xargs -r docker volume rm
docker images --format '{{.Repository}}:{{.Tag}}' | grep -vx tiny:1 | grep -v '<none>' | xargs -r docker rmi -f
docker image prune -f
rm -rf "$DOCKER_CONFIG" "$BRINE_DOCKER"/registry*/docker
for name; do docker run -d --name "$name" --network none tiny:1 sleep 100; done
`

var dockerMasks = [...]struct {
	what *regexp.Regexp
	mask string
}{
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "<short>"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "<time>"},
	{regexp.MustCompile(`\b(sha256:)[0-9a-f]{5}\b`), "$1<five>"}, // what Salt takes for twelve characters of an id
	{regexp.MustCompile(`(?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b`), "<mac>"},
	{regexp.MustCompile(`^(Up|Exited \(\d+\)|Created) ?.*(second|minute).*$`), "$1 <ago>"},
	{regexp.MustCompile(`/tmp/brine\d+/`), "<daemon>/"},
	{regexp.MustCompile(`/proc/\d+/`), "/proc/<pid>/"},
	{regexp.MustCompile(`(Time_Elapsed:\n +)[0-9.e-]+`), "$1<some>"}, // in the text of an error
	{regexp.MustCompile(`^/[a-z]+_[a-z]+\d?$`), "/<name>"},
	{regexp.MustCompile(`(Name:\n +)[a-z]+_[a-z]+\d?\b`), "$1<name>"},
}

// MaskDocker hides in an answer what no two containers have in common: ids, times, addresses and names that the daemon chose.
func MaskDocker(v any) any {
	switch v := v.(type) {
	case string:
		for _, m := range dockerMasks {
			v = m.what.ReplaceAllString(v, m.mask)
		}
		return v
	case []any:
		for i := range v {
			v[i] = MaskDocker(v[i])
		}
		if len(v) > 0 && unordered(v[0]) {
			sortByText(v)
		}
	case map[string]any:
		return maskedMap(v)
	}
	return v
}

// unordered tells whether a value is a network or a mount, which the daemon lists in any order.
func unordered(v any) bool {
	m, _ := v.(map[string]any)
	return m["Destination"] != nil || m["Driver"] != nil && m["Scope"] != nil
}

func sortByText(list []any) {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(pytext.Str(a), pytext.Str(b)) })
}

// madeUp is a name that the daemon gave a container.
var madeUp = regexp.MustCompile(`^[a-z]+_[a-z]+\d?$`)

// maskedMap masks keys, too: what stands under masked ones becomes a list.
func maskedMap(m map[string]any) any {
	out, lists := map[string]any{}, map[string][]any{}
	for k, x := range m {
		switch k {
		case "Time_Elapsed", "Time_Created_Epoch", "Time_Created_Local", "Created", "Pid", "pid", "StartedAt", "FinishedAt":
			x = "<some>"
		case "Name":
			if s, ok := x.(string); ok && madeUp.MatchString(s) {
				x = "<name>"
			}
		}
		if key := MaskDocker(k).(string); key == k {
			out[k] = MaskDocker(x)
		} else {
			lists[key] = append(lists[key], MaskDocker(x))
		}
	}
	for k, list := range lists {
		sortByText(list)
		out[k] = list
	}
	return out
}
