//go:build interop && linux

package beacon

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/modules"
)

// scene is a beacon that runs several times while things change.
type scene struct {
	Name   string           `json:"-"`
	Module string           `json:"module"`
	Kind   string           `json:"-"` // if it differs from the module's name
	Salt   map[string][]any `json:"salt"`
	Set    map[string]any   `json:"set"`
	Steps  []step           `json:"steps"`
	Loose  bool             `json:"-"` // only the shape is compared, since the host changes meanwhile
	Root   string           `json:"-"`
}

type step struct {
	Append map[string]string `json:"append"`
	Run    []string          `json:"run"`
	Config []any             `json:"config"`
}

type outcome struct {
	Valid []any `json:"valid"`
	Found []any `json:"found"`
	Error string
}

// login is a record of wtmp.
func login(kind int16, line, user string) string {
	b := make([]byte, recordSize)
	binary.NativeEndian.PutUint16(b, uint16(kind))
	binary.NativeEndian.PutUint32(b[4:], 4711)
	copy(b[8:], line)
	copy(b[44:], user)
	copy(b[76:], "host.example")
	binary.NativeEndian.PutUint32(b[336:], 7)
	binary.NativeEndian.PutUint32(b[340:], 1700000000)
	return hex.EncodeToString(b)
}

func list(x ...any) []any { return append([]any{}, x...) }

func m(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

func scenes(t *testing.T, dir string) []scene {
	t.Helper()
	root := filepath.Join(dir, "root")
	logs := filepath.Join(root, "var/log")
	watched := filepath.Join(dir, "watched")
	for _, d := range []string{logs, filepath.Join(watched, "sub")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := filepath.Join(dir, "text.log")
	for _, f := range []string{text, filepath.Join(logs, "btmp"), filepath.Join(logs, "wtmp")} {
		content := "before\n"
		if f != text {
			b, _ := hex.DecodeString(login(7, "tty9", "early"))
			content = string(b)
		}
		if err := os.WriteFile(f, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	add := func(file, hexText string) map[string]string { return map[string]string{file: hexText} }
	line := func(s string) string { return hex.EncodeToString([]byte(s)) }
	logConfig := func() []any {
		return list(m("file", text), m("tags", m("ssh", m("regex", `.*sshd.*`), "bad", m("regex", "("), "none", m("regex", ""), "first", m("regex", "x"))))
	}
	svc := func(c map[string]any) []any { return list(m("services", m("nginx", c))) }
	averages := func(low, high float64) []any {
		return list(m("averages", m("1m", list(low, high), "5m", list(low, high), "15m", list(low, high))))
	}
	btmp, wtmp := filepath.Join(logs, "btmp"), filepath.Join(logs, "wtmp")
	inotifyConfig := func() []any {
		return list(m("files", m(watched, m("mask", list("create", "modify", "delete", "close_write", "moved_to", "moved_from", "attrib"),
			"recurse", true, "auto_add", true, "exclude", list(watched+"/no", m(`\.swp$`, m("regex", true)), watched+"/y*")))))
	}
	certificate := filepath.Join(os.TempDir(), fmt.Sprintf("brine-cert-%d.pem", os.Getpid()))
	return []scene{
		{Name: "service", Module: "service", Salt: map[string][]any{"service.status": {true, true, false, false, true}}, Steps: []step{
			{Config: svc(m("onchangeonly", true))}, {Config: svc(m("onchangeonly", true))}, {Config: svc(m("onchangeonly", true, "uncleanshutdown", "/etc/passwd"))},
			{Config: svc(m("onchangeonly", true))}, {Config: svc(m("onchangeonly", true))}}},
		{Name: "service always", Module: "service", Salt: map[string][]any{"service.status": {true, false}}, Steps: []step{{Config: svc(m())}, {Config: svc(m("uncleanshutdown", "/nosuch"))}}},
		{Name: "service quiet", Module: "service", Salt: map[string][]any{"service.status": {true, false}}, Steps: []step{
			{Config: svc(m("onchangeonly", true, "emitatstartup", false))}, {Config: svc(m("onchangeonly", true, "emitatstartup", false))}}},
		{Name: "service delay", Module: "service", Salt: map[string][]any{"service.status": {true, false}}, Steps: []step{
			{Config: svc(m("onchangeonly", true, "delay", 30))}, {Config: svc(m("onchangeonly", true, "delay", 30))}}},
		{Name: "pkg", Module: "pkg", Salt: map[string][]any{"pkg.version": {"1.0", "1.0", "", "1.0"}, "pkg.latest_version": {"", "1.1", ""}}, Steps: []step{
			{Config: list(m("pkgs", list("zsh")))}, {Config: list(m("pkgs", list("zsh")), m("refresh", true))}, {Config: list(m("pkgs", list("zsh")))},
			{Config: list(m("pkgs", list("zsh")))}, {Config: list(m("pkgs", "zsh"))}}},
		{Name: "salt_monitor", Module: "salt_monitor", Salt: map[string][]any{"test.ping": {true}, "test.false": {false}, "test.echo": {"x"}}, Steps: []step{
			{Config: list(m("salt_fun", "test.ping"))}, {Config: list(m("salt_fun", list("test.ping", "test.false", m("test.echo", m("args", list("x"), "kwargs", list(m("a", 1)))))))}}},
		{Name: "ps", Module: "ps", Steps: []step{{Config: list(m("processes", m("nosuchprocess", "stopped", "other", "running", "third", "x")))}}},
		{Name: "load", Module: "load", Loose: true, Steps: []step{{Config: averages(-2, -1)}, {Config: averages(0, 1e6)}}},
		{Name: "load bad", Module: "load", Steps: []step{{Config: list(m("averages", m("2m", 1)))}, {Config: list(m("onchangeonly", 1))}}},
		{Name: "memusage", Module: "memusage", Loose: true, Steps: []step{{Config: list(m("percent", "0%"))}, {Config: list(m("percent", 101))}}},
		{Name: "swapusage", Module: "swapusage", Loose: true, Steps: []step{{Config: list(m("percent", 0))}, {Config: list(m("percent", 101))}}},
		{Name: "diskusage", Module: "diskusage", Loose: true, Steps: []step{{Config: list(m("/", "0%"), m("/pro.*", 0))}, {Config: list(m("/", 101))}, {Config: list(m("^/nosuch$", 1))}}},
		{Name: "network_info", Module: "network_info", Loose: true, Steps: []step{
			{Config: list(m("interfaces", m("lo", m("type", "greater", "bytes_sent", -1), "nosuch0", m("bytes_sent", 1))))},
			{Config: list(m("interfaces", m("lo", m("type", "equal", "errin", 0))))}, {Config: list(m("interfaces", m("lo", m("errin", 99))))}}},
		{Name: "log", Module: "log_beacon", Kind: "log", Steps: []step{{Config: logConfig()}, {Config: logConfig()},
			{Append: add(text, line("sshd accepted\nother\nsshd again")), Config: logConfig()}, {Append: add(text, line("x\n")), Config: logConfig()}}},
		{Name: "log missing", Module: "log_beacon", Kind: "log", Steps: []step{{Config: list(m("file", "/nosuch/file"))}, {Config: list(m("x", 1))}}},
		{Name: "btmp", Module: "btmp", Root: root, Set: map[string]any{"BTMP": btmp}, Salt: map[string][]any{"group.info": {m("members", list("bob"))}}, Steps: []step{
			{Config: list()}, {Append: add(btmp, login(6, "ssh", "alice")+login(6, "ssh", "bob")), Config: list()},
			{Append: add(btmp, login(6, "ssh", "alice")+login(6, "ssh", "bob")), Config: list(m("users", m("alice", m())))},
			{Append: add(btmp, login(6, "ssh", "alice")+login(6, "ssh", "bob")), Config: list(m("groups", m("staff", m())))},
			{Append: add(btmp, login(6, "ssh", "alice")), Config: list(m("users", m("alice", m("time_range", m("start", "0:00", "end", "23:59:59")))))},
			{Append: add(btmp, login(6, "ssh", "alice")), Config: list(m("users", m("alice", m("time_range", m("start", "1/1/2001", "end", "1/1/2002")))))},
			{Append: add(btmp, login(6, "ssh", "alice")), Config: list(m("defaults", m("time_range", m("start", "1/1/2001", "end", "1/1/2002"))))},
			{Append: add(btmp, login(6, "ssh", "alice")[:300]), Config: list()}, {Append: add(btmp, login(6, "ssh", "alice")[300:]), Config: list()}}},
		{Name: "wtmp", Module: "wtmp", Root: root, Set: map[string]any{"WTMP": wtmp}, Steps: []step{{Config: list()},
			{Append: add(wtmp, login(7, "pts/0", "alice")), Config: list()}, {Append: add(wtmp, login(8, "pts/0", "")+login(8, "pts/1", "")+login(2, "~", "reboot")), Config: list()}}},
		{Name: "cert_info", Module: "cert_info", Steps: []step{{Config: list(m("files", list(certificate, "/nosuch.pem", m(certificate, m("notify_days", 1)))), m("notify_days", -1))},
			{Config: list(m("files", list(certificate)), m("notify_days", 5))}, {Config: list(m("files", list(certificate)))}}},
		{Name: "inotify", Module: "inotify", Steps: []step{{Config: inotifyConfig()},
			{Run: []string{"echo a > " + watched + "/file", "mkdir " + watched + "/new"}, Config: inotifyConfig()},
			{Run: []string{"echo b >> " + watched + "/file", "echo c > " + watched + "/sub/deep", "echo d > " + watched + "/new/inner"}, Config: inotifyConfig()},
			{Run: []string{"echo 1 > " + watched + "/no1", "echo 1 > " + watched + "/x.swp", "echo 1 > " + watched + "/y.tmp", "mv " + watched + "/file " + watched + "/moved",
				"chmod 600 " + watched + "/moved", "rm " + watched + "/moved"}, Config: inotifyConfig()}, {Config: inotifyConfig()}}},
		{Name: "inotify bad", Module: "inotify", Steps: []step{{Config: list(m("files", list()))}, {Config: list(m("files", m("/x", m("mask", list("nosuch")))))},
			{Config: list(m("files", m("/x", m("recurse", 1))))}, {Config: list(m("files", m("/x", m("a", 1))))}, {Config: list(m("x", 1))}}},
	}
}

// makeCertificate creates the certificate for both sides.
func makeCertificate(t *testing.T) {
	t.Helper()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("brine-cert-%d.pem", os.Getpid()))
	t.Cleanup(func() { os.Remove(path) })
	cmd := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", "-out", path, "-days", "30", "-set_serial", "4711", "-subj",
		"/C=DE/ST=Berlin/L=Berlin/O=Brine/OU=Test/CN=example.org/emailAddress=a@example.org", "-addext", "subjectAltName=DNS:example.org,IP:127.0.0.1",
		"-addext", "keyUsage=digitalSignature,keyEncipherment", "-addext", "extendedKeyUsage=serverAuth,clientAuth")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func askStock(t *testing.T, all []scene) [][]outcome {
	t.Helper()
	var out [][]outcome
	testsalt.Ask(t, all, &out, "testdata/stock.py")
	return out
}

// ours runs a scene with our beacons, and returns the result after a round trip through JSON.
func (s scene) ours(t *testing.T) []outcome {
	t.Helper()
	h := &Host{Env: &modules.Env{ID: "m", Root: s.Root}, Memory: map[string]any{}, Exec: func(_ context.Context, fun string, _ []any, _ map[string]any) (any, error) {
		answers := s.Salt[fun]
		if len(answers) > 1 {
			s.Salt[fun] = answers[1:]
		}
		return answers[0], nil
	}}
	name := s.Kind
	if name == "" {
		name = s.Module
	}
	var kind *Kind
	for _, k := range Kinds() {
		if k.Name == name {
			kind = k
		}
	}
	var out []outcome
	var last []any
	for _, st := range s.Steps {
		for path, content := range st.Append {
			b, _ := hex.DecodeString(content)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(b); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		for _, cmd := range st.Run {
			if b, err := exec.Command("/bin/sh", "-c", cmd).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", cmd, err, b)
			}
		}
		ok, comment := kind.Validate(h, st.Config)
		o := outcome{Valid: list(ok, comment)}
		if ok {
			last = append(st.Config, m("_beacon_name", s.Module))
			found, err := kind.Look(t.Context(), h, last)
			if err != nil {
				o.Error = err.Error()
			}
			b, err := json.Marshal(found)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &o.Found); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, o)
	}
	if kind.Close != nil {
		kind.Close(h, last)
	}
	return out
}

// shape removes from a value what changes from one moment to the next.
func shape(v any) any {
	switch v := v.(type) {
	case float64:
		return "number"
	case []any:
		for i := range v {
			v[i] = shape(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shape(v[k])
		}
	}
	return v
}

func TestBeaconsAsStock(t *testing.T) {
	makeCertificate(t)
	dir := t.TempDir()
	left, right := scenes(t, filepath.Join(dir, "theirs")), scenes(t, filepath.Join(dir, "ours."))
	theirs := askStock(t, left)
	for i, s := range right {
		t.Run(s.Name, func(t *testing.T) {
			ours := s.ours(t)
			for j := range ours {
				for _, o := range []*outcome{&theirs[i][j], &ours[j]} {
					if s.Loose {
						o.Found, _ = shape(o.Found).([]any)
					}
					if len(o.Found) == 0 {
						o.Found = nil
					}
				}
				a, _ := json.Marshal(theirs[i][j])
				b, _ := json.Marshal(ours[j])
				// The scratch directories differ in one word of the same length.
				x := strings.ReplaceAll(string(a), "theirs", "ours.")
				if diff := cmp.Diff(x, string(b)); diff != "" && !sameJSON(x, string(b)) {
					t.Errorf("step %d: stock (-) and ours (+):\n%s", j, cmp.Diff(parse(t, x), parse(t, string(b))))
				}
			}
		})
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

func parse(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
