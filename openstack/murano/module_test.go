package murano

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/minion"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) { modulestest.Run(t, Module) }

// guest is a minion with a key, and what the engine needs to sign plans for it.
type guest struct {
	t        *testing.T
	env      *modules.Env
	registry *modules.Registry
	key      *rsa.PrivateKey
	stamp    int64
}

// testKey generates one key for all tests.
var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, minKey)
	if err != nil {
		panic(err)
	}
	return key
})

func newGuest(t *testing.T) *guest {
	t.Helper()
	g := &guest{t: t, env: modulestest.Env(t), registry: modules.NewRegistry(Module), key: testKey()}
	g.env.Runner = minion.NewRunner()
	g.env.Root = ""
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&g.key.PublicKey)})
	g.env.Opts()["murano"] = map[string]any{"engine_key": string(text)}
	return g
}

func (g *guest) settings() map[string]any { return g.env.Opts()["murano"].(map[string]any) }

func (g *guest) sign(queue, text string) string {
	g.t.Helper()
	sum := sha256.Sum256([]byte(queue + text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, g.key, crypto.SHA256, sum[:])
	if err != nil {
		g.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(sig)
}

func (g *guest) call(text, signature string) modules.Result {
	g.t.Helper()
	return g.registry.Run(g.t.Context(), g.env, modules.Request{Fun: "execplan.run", Args: []any{text, signature}})
}

// run signs a plan with the next stamp, runs it, and returns its result without the parts that always differ.
func (g *guest) run(plan map[string]any) map[string]any {
	g.t.Helper()
	g.stamp++
	plan = maps.Clone(plan)
	plan["Stamp"] = g.stamp
	text, err := json.Marshal(plan)
	if err != nil {
		g.t.Fatal(err)
	}
	res := g.call(string(text), g.sign("minion", string(text)))
	if res.Err != nil {
		g.t.Fatal(res.Err)
	}
	out := res.Return.(map[string]any)
	if code := out["ErrorCode"] != int64(0); code != (res.Retcode == 1) {
		g.t.Errorf("the return code is %d with %v", res.Retcode, out)
	}
	if id, _ := out["ID"].(string); len(id) != 32 || len(out["Time"].(string)) != 26 {
		g.t.Errorf("%v", out)
	}
	delete(out, "ID")
	delete(out, "Time")
	left, err := filepath.Glob(filepath.Join(g.env.Opts()["cachedir"].(string), "murano", "plan-*"))
	if err != nil || len(left) > 0 {
		g.t.Errorf("left behind: %v %v", left, err)
	}
	return out
}

// plainJSON returns a value after a JSON round trip.
func plainJSON(t *testing.T, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type vector struct{ Plan, Result map[string]any }

type vectors struct {
	Programs map[string]string
	Signed   struct{ Queue, Key, Plan, Signature string }
	Runs     map[string]vector
	Bad      map[string]vector
}

func readVectors(t *testing.T) *vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	v := &vectors{}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil || len(v.Runs) < 9 || len(v.Bad) < 17 {
		t.Fatalf("%d runs, %d bad plans: %v", len(v.Runs), len(v.Bad), err)
	}
	return v
}

// onPath creates programs in a directory at the beginning of PATH.
func onPath(t *testing.T, programs map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestAgentsResults compares the results of plans with those of Murano's agent. The agent uses the Body, brine uses
// Calls.
func TestAgentsResults(t *testing.T) {
	v := readVectors(t)
	onPath(t, v.Programs)
	for name, one := range v.Runs {
		t.Run(name, func(t *testing.T) {
			plan := maps.Clone(one.Plan)
			delete(plan, "Body")
			got := plainJSON(t, newGuest(t).run(plan)).(map[string]any)
			if list, ok := got["Body"].([]any); ok {
				for i, call := range plan["Calls"].([]any) {
					if name := list[i].(map[string]any)["script"]; name != call.(map[string]any)["Script"] {
						t.Errorf("call %d is of %v", i, name)
					}
					delete(list[i].(map[string]any), "script")
				}
			}
			// The JSON of a node has different white space.
			blanks := cmp.Transformer("blanks", func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, ": ", ":"), ", ", ",") })
			if d := cmp.Diff(one.Result, got, cmp.FilterValues(func(a, b string) bool { return strings.HasPrefix(a, "{") }, blanks)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAgentsRefusals: plans that Murano's agent refuses are refused with the same code and text.
func TestAgentsRefusals(t *testing.T) {
	g := newGuest(t)
	for name, one := range readVectors(t).Bad {
		t.Run(name, func(t *testing.T) {
			got := plainJSON(t, g.run(one.Plan)).(map[string]any)
			if name == "a format of tomorrow" {
				one.Result["Body"].(map[string]any)["Message"] = "Unsupported format version 2.3.0 (I support versions 2.0.0, 2.1.0, 2.2.0)"
			}
			if d := cmp.Diff(one.Result, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestEnginesSignature verifies a signature made by Murano's engine.
func TestEnginesSignature(t *testing.T) {
	signed := readVectors(t).Signed
	sig, err := hex.DecodeString(signed.Signature)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t)
	g.settings()["engine_key"], g.settings()["queue"] = signed.Key, signed.Queue
	res := g.call(signed.Plan, base64.StdEncoding.EncodeToString(sig))
	if out, _ := res.Return.(map[string]any); res.Err != nil || out["ErrorCode"] != int64(0) {
		t.Fatalf("%v %v", res.Return, res.Err)
	}
	g.settings()["queue"] = "e1a-h2c"
	if res := g.call(signed.Plan, base64.StdEncoding.EncodeToString(sig)); res.Err == nil || !strings.Contains(res.Err.Error(), "it is not signed for e1a-h2c") {
		t.Errorf("%v", res.Err)
	}
}

// hello returns a plan with one script.
func hello() map[string]any {
	return map[string]any{"FormatVersion": "2.2.0", "ID": "p1",
		"Scripts": map[string]any{"deploy": map[string]any{"Type": "Application", "EntryPoint": "sh"}},
		"Files":   map[string]any{"sh": map[string]any{"Name": "deploy.sh", "BodyType": "Text", "Body": "#!/bin/sh\necho ran; cat\n"}}}
}

func TestRefusals(t *testing.T) {
	g := newGuest(t)
	plan := func(stamp any) string {
		p := hello()
		p["Stamp"] = stamp
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	good := plan(7)
	other, err := rsa.GenerateKey(rand.Reader, minKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, signature, want string }{
		{"not signed", good, "", "it is not signed for minion"},
		{"no Base64", good, "!", "its signature is not Base64"},
		{"signed for another minion", good, g.sign("minion2", good), "it is not signed for minion"},
		{"signed without a minion", good, g.sign("", good), "it is not signed for minion"},
		{"signed by another key", good, (&guest{t: t, key: other}).sign("minion", good), "it is not signed for minion"},
		{"changed", strings.Replace(good, "ran", "run", 1), g.sign("minion", good), "it is not signed for minion"},
		{"no JSON", "[]", "", "it is neither a JSON object nor Base64 of one"},
		{"no object", "bnVsbA==", g.sign("minion", "null"), "it is not a JSON object"},
		{"half an object", "{", g.sign("minion", "{"), "it is not a JSON object"},
		{"no stamp", plan(nil), g.sign("minion", plan(nil)), "it has no Stamp"},
		{"a stamp below zero", plan(-1), g.sign("minion", plan(-1)), "it has no Stamp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if res := g.call(c.text, c.signature); res.Err == nil || !strings.Contains(res.Err.Error(), c.want) {
				t.Errorf("%v %v", res.Return, res.Err)
			}
		})
	}
	t.Run("sent again", func(t *testing.T) {
		if res := g.call(good, g.sign("minion", good)); res.Err != nil || res.Return.(map[string]any)["ErrorCode"] != int64(0) {
			t.Fatalf("%v %v", res.Return, res.Err)
		}
		for _, n := range []int{7, 6} {
			want := "is not greater than 7, that of the last plan"
			if res := g.call(plan(n), g.sign("minion", plan(n))); res.Err == nil || !strings.Contains(res.Err.Error(), want) {
				t.Errorf("%d: %v", n, res.Err)
			}
		}
		// The stamp survives a restart of the minion.
		g2 := newGuest(t)
		g2.env.Opts()["cachedir"] = g.env.Opts()["cachedir"]
		if res := g2.call(good, g2.sign("minion", good)); res.Err == nil {
			t.Errorf("%v", res.Return)
		}
		if res := g2.call(plan(8), g2.sign("minion", plan(8))); res.Err != nil {
			t.Error(res.Err)
		}
	})
	for _, c := range []struct {
		name string
		conf map[string]any
		want string
	}{
		{"no key", nil, "the option murano has no engine_key"},
		{"an unknown option", map[string]any{"key": "x"}, `it has no key "key"`},
		{"a file that is missing", map[string]any{"engine_key": "/nowhere"}, "cannot read murano's engine_key"},
		{"not a key", map[string]any{"engine_key": "-----BEGIN X"}, "it is not PEM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.env.Opts()["murano"] = c.conf
			if res := g.call(good, ""); res.Err == nil || !strings.Contains(res.Err.Error(), c.want) {
				t.Errorf("%v", res.Err)
			}
		})
	}
}

// message returns the text of an error result.
func message(out map[string]any) string {
	body, _ := out["Body"].(map[string]any)
	text, _ := body["Message"].(string)
	return text
}

func TestBody(t *testing.T) {
	g := newGuest(t)
	p := hello()
	p["Body"] = "return deploy()"
	out := g.run(p)
	if got := message(out); out["ErrorCode"] != int64(2) || got != bodyRefused {
		t.Errorf("%v", out)
	}
	for _, body := range []any{"return", " return\n", "", nil} {
		p["Body"] = body
		if out := g.run(p); out["ErrorCode"] != int64(0) {
			t.Errorf("%q: %v", body, out)
		}
	}
}

// TestOrder: a plan without Calls runs its scripts in its order, and the first failure ends it.
func TestOrder(t *testing.T) {
	g := newGuest(t)
	text := `{"FormatVersion": "2.2.0", "ID": "p", "Stamp": 1, "Files": {"f": {"Name": "f", "BodyType": "Text", "Body": "#!/bin/sh\npwd"}}, "Scripts": {` +
		`"z": {"Type": "Application", "EntryPoint": "f"}, "a": {"Type": "Application", "EntryPoint": "f"}, "m": {"Type": "Application", "EntryPoint": "f", "Files": [{"f": "x"}]}}}`
	res := g.call(text, g.sign("minion", text))
	var names []string
	for _, one := range res.Return.(map[string]any)["Body"].([]any) {
		one := one.(map[string]any)
		names = append(names, one["script"].(string)+" "+filepath.Base(one["stdout"].(string)))
	}
	if !slices.Equal(names, []string{"z z", "a a", "m m"}) {
		t.Errorf("%q %v", names, res.Err)
	}
}

func TestCalls(t *testing.T) {
	g := newGuest(t)
	p := hello()
	p["Calls"] = []any{map[string]any{"Script": "deploy", "Input": "from stdin"}}
	if out := g.run(p); !strings.Contains(out["Body"].([]any)[0].(map[string]any)["stdout"].(string), "ran\nfrom stdin") {
		t.Errorf("%v", out)
	}
	p["Calls"] = []any{}
	if out := g.run(p); out["ErrorCode"] != int64(0) || len(out["Body"].([]any)) != 0 {
		t.Errorf("%v", out)
	}
	for _, c := range []struct {
		call map[string]any
		want string
	}{
		{map[string]any{"Script": "none"}, `Calls names the script "none"`},
		{map[string]any{"Script": "deploy", "Attributes": map[string]any{"a": 1}}, "an argument that a script of the type Application does not take"},
	} {
		p["Calls"] = []any{c.call}
		if out := g.run(p); !strings.Contains(message(out), c.want) {
			t.Errorf("%v", out)
		}
	}
}

// TestNames: no file name refers to a path outside of the plan's directory.
func TestNames(t *testing.T) {
	g := newGuest(t)
	for _, name := range []string{"../x", "/etc/x", "a/../../x", ".", ".."} {
		p := hello()
		p["Files"].(map[string]any)["sh"].(map[string]any)["Name"] = name
		if out := g.run(p); !strings.Contains(message(out), "leads out of the directory of its script") {
			t.Errorf("%s: %v", name, out)
		}
		p = hello()
		p["Scripts"] = map[string]any{name: map[string]any{"Type": "Application", "EntryPoint": "sh"}}
		if out := g.run(p); name != "a/../../x" && out["ErrorCode"] != int64(2) {
			t.Errorf("%s: %v", name, out)
		}
	}
	// links in downloaded files are not followed
	p := hello()
	p["Scripts"] = map[string]any{"s": map[string]any{"Type": "Application", "EntryPoint": "late", "Files": []any{"repo"}}}
	p["Files"] = map[string]any{"repo": map[string]any{"Name": "repo", "Type": "Downloadable", "URL": "http://example/x.git"},
		"late": map[string]any{"Name": "repo/link/x", "BodyType": "Text", "Body": "x"}}
	out := t.TempDir()
	onPath(t, map[string]string{"git": "#!/bin/sh\nfor last; do :; done; mkdir -p \"$last\" && ln -s " + out + " \"$last/link\"\n"})
	got := g.run(p)
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 || got["ErrorCode"] == int64(0) {
		t.Errorf("%v %v %v", entries, err, got)
	}
	p = hello()
	p["Scripts"] = map[string]any{"p": map[string]any{"Type": "Puppet", "EntryPoint": "a::b }} exec { x"}}
	if out := g.run(p); !strings.Contains(message(out), "it is no name of a class or recipe") {
		t.Errorf("%v", out)
	}
}

func TestDownloads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/dir/app.tar" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("content"))
	}))
	defer server.Close()
	g := newGuest(t)
	onPath(t, map[string]string{
		"git": "#!/bin/sh\nfor last; do :; done; mkdir -p \"$last\"; echo \"$*\" | sed 's, [^ ]*$,,' >\"$last/git\"\n",
		"svn": "#!/bin/sh\nfor last; do :; done; mkdir -p \"$last\"; echo \"$*\" | sed 's, [^ ]*$,,' >\"$last/svn\"\n"})
	p := hello()
	p["Files"].(map[string]any)["sh"].(map[string]any)["Body"] = "#!/bin/sh\nfind . -type f | sort; cat web/app.tar code/git old/svn\n"
	get := func(name, url string) map[string]any {
		return map[string]any{"Name": name, "Type": "Downloadable", "URL": url}
	}
	files := p["Files"].(map[string]any)
	files["1"], files["2"], files["3"] = get("web", server.URL+"/dir/app.tar"), get("code", "git+https://git.example/x"), get("old", "svn://svn.example/x")
	p["Scripts"].(map[string]any)["deploy"].(map[string]any)["Files"] = []any{"1", "2", map[string]any{"3": "x"}}
	want := "./code/git\n./deploy.sh\n./old/svn\n./web/app.tar\ncontentclone --quiet -- https://git.example/x\n" +
		"checkout --quiet --non-interactive -- svn://svn.example/x"
	out := g.run(p)
	if list, ok := out["Body"].([]any); !ok || list[0].(map[string]any)["stdout"] != want {
		t.Errorf("%v", out)
	}
	for url, want := range map[string]string{server.URL + "/none": "404 Not Found", "ftp://x/": "Provided URL is not valid", "x": "Provided URL is not valid",
		"http://127.0.0.1:1/x": "connection refused"} {
		files["1"] = get("web", url)
		if out := g.run(p); !strings.Contains(message(out), want) {
			t.Errorf("%s: %v", url, out)
		}
	}

	// results contain no password of a URL
	onPath(t, map[string]string{"svn": "#!/bin/sh\nfor a; do case $a in *@*) echo \"cannot connect to '$a'\" >&2; esac; done; exit 1\n"})
	for _, url := range []string{strings.Replace(server.URL, "://", "://ada:s3cret@", 1) + "/none", "http://ada:s3cret@127.0.0.1:1/x", "ftp://ada:s3cret@x/",
		"ada:s3cret@x/y", "http://ada:s3cret@[x/", "svn://ada:s3cret@svn.example/x"} {
		files["1"] = get("web", url)
		if said := message(g.run(p)); said == "" || strings.Contains(said, "s3cret") {
			t.Errorf("%s: %q", url, said)
		}
	}
}

func TestTools(t *testing.T) {
	onPath(t, map[string]string{"puppet": "#!/bin/sh\ncat hiera.yaml default.yaml\n", "chef-solo": "#!/bin/sh\ncat solo.rb | sed 's,[^ ]*/plan-[0-9]*/,,'\n",
		"berks": "#!/bin/sh\n[ -f \"${3#--berksfile=}\" ] || [ -f \"${2#--berksfile=}\" ]\n"})
	g := newGuest(t)
	p := hello()
	p["Scripts"] = map[string]any{"p": map[string]any{"Type": "Puppet", "EntryPoint": "tomcat::install"}}
	p["Calls"] = []any{map[string]any{"Script": "p", "Attributes": map[string]any{"port": 80}}}
	if out := g.run(p); !strings.HasSuffix(out["Body"].([]any)[0].(map[string]any)["stdout"].(string), `{"tomcat::port":80}`) {
		t.Errorf("%v", out)
	}
	berks := map[string]any{"Type": "Chef", "EntryPoint": "tomcat::install", "Options": map[string]any{"useBerkshelf": true}}
	p["Scripts"], p["Calls"] = map[string]any{"c": berks}, nil
	if out := g.run(p); !strings.HasPrefix(message(out), "Berskfile ") || out["ErrorCode"] != int64(100) {
		t.Errorf("%v", out)
	}
	berks["Files"] = []any{"b"}
	p["Files"].(map[string]any)["b"] = map[string]any{"Name": "tomcat/Berksfile", "BodyType": "Text", "Body": "x"}
	if out := g.run(p); out["Body"].([]any)[0].(map[string]any)["stdout"] != "cookbook_path scripts/c/berks-cookbooks'" {
		t.Errorf("%v", out)
	}
}
