package restapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/store"
)

// part is one part of a multipart request: its header's disposition, and its text.
type part struct{ disposition, text string }

// upload places an order in parts.
func (s *site) upload(parts ...part) (int, m) {
	s.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		pw, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {p.disposition}})
		if err != nil {
			s.t.Fatal(err)
		}
		io.WriteString(pw, p.text)
	}
	w.Close()
	return s.uploadRaw(w.FormDataContentType(), b.Bytes())
}

func (s *site) uploadRaw(kind string, body []byte) (int, m) {
	s.t.Helper()
	code, text, _ := s.do("POST", "/v1/jobs", kind, string(body), "Accept", "application/json")
	out := m{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatalf("%d %s", code, text)
	}
	return code, out
}

func TestOrderWithContent(t *testing.T) {
	s := newSite(t, nil)
	job := m{"id": "deploy-1", "tgt": []any{"db-7"}, "fun": "state.apply", "arg": []any{"_order.deploy-1.config"}, "pillar": m{"key": "x"}, "secret": true,
		"metadata": m{"stack": "s1", "n": 1}, "files": m{"config.sls": "a: test.nop\n", "bin": m{"base64": "AP8="}}}
	code, first := s.json("POST", "/v1/jobs", job)
	if code != 202 || first["id"] != "deploy-1" {
		t.Fatal(code, first)
	}
	// The same in parts is the same order.
	delete(job, "files")
	b, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	code, again := s.upload(part{`form-data; name="order"`, string(b)}, part{`form-data; name="file"; filename="config.sls"`, "a: test.nop\n"},
		part{`form-data; name="bin"`, "\x00\xff"})
	if code != 202 || again["jid"] != first["jid"] {
		t.Fatal(code, again)
	}
	want := m{"jobs": []any{m{"id": "deploy-1", "jid": first["jid"], "created": first["created"], "done": false, "success": false, "secret": true,
		"fun": "state.apply", "tgt": []any{"db-7"}, "tgt_type": "list", "metadata": m{"stack": "s1", "n": 1.0}, "files": []any{"bin", "config.sls"},
		"minions": m{"db-7": m{"status": "queued"}}}}}
	if code, v := s.json("GET", "/v1/jobs?metadata.stack=s1&metadata.n=1", nil); code != 200 || cmp.Diff(want, v) != "" {
		t.Error(code, cmp.Diff(want, v))
	}
	if code, v := s.json("GET", "/v1/jobs?metadata.stack=s2", nil); code != 200 || cmp.Diff(m{"jobs": []any{}}, v) != "" {
		t.Error(code, v)
	}
	// Nothing that shows jobs shows the arguments.
	for _, path := range []string{"/jobs/" + first["jid"].(string), "/jobs"} {
		code, text, _ := s.do("GET", path, "", "", "Accept", "application/json")
		if code != 200 || strings.Contains(text, "_order.deploy") || !strings.Contains(text, "sealed") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestLargeUpload: a file that is larger than the limit of a body is read in parts, but only from an authenticated
// user.
func TestLargeUpload(t *testing.T) {
	s := newSite(t, nil)
	order := part{`form-data; name="order"`, `{"id": "big", "tgt": ["db-7"], "fun": "test.ping"}`}
	file := part{`form-data; name="file"; filename="big"`, strings.Repeat("x", 5<<20)}
	if code, v := s.upload(order, file); code != 202 {
		t.Fatal(code, v)
	}
	c, _ := store.ContentsOf(s.master.Store())
	if n, err := c.ContentSize(t.Context(), ""); err != nil || n < 5<<20 || n > 5<<20+100<<10 {
		t.Error(n, err)
	}
	token := s.token
	s.token = ""
	if code, v := s.upload(order, file); code != 401 {
		t.Error(code, v)
	}
	s.token = token
}

func TestBadUploads(t *testing.T) {
	s := newSite(t, nil)
	head := part{`form-data; name="order"`, `{"id": "o", "tgt": ["m"], "fun": "test.ping"}`}
	named := func(name string) part { return part{fmt.Sprintf(`form-data; name="f"; filename="%s"`, name), "x"} }
	for _, c := range []struct {
		name  string
		parts []part
		code  int
		want  string
	}{
		{"no order", []part{named("a")}, 400, `first part must be "order"`},
		{"nothing", nil, 400, `first part must be "order"`},
		{"order later", []part{named("a"), head}, 400, `first part must be "order"`},
		{"bad json", []part{{head.disposition, "{"}}, 400, `part "order" is not valid`},
		{"a list", []part{{head.disposition, "[1]"}}, 400, "must be a map"},
		{"large order", []part{{head.disposition, strings.Repeat(" ", 2<<20)}}, 413, "1048576 bytes"},
		{"up", []part{head, named("../x")}, 400, "is a path"},
		{"absolute", []part{head, named("/etc/passwd")}, 400, "is a path"},
		{"twice", []part{head, named("a"), named("a")}, 400, "two files"},
		{"no name", []part{head, {"form-data", "x"}}, 400, "empty name"},
		{"no disposition", []part{head, {"", "x"}}, 400, "a part has no name"},
		{"field", []part{{head.disposition, `{"id": "o", "tgt": ["m"], "fun": "test.ping", "file": {}}`}}, 400, "There is no field"},
		{"id", []part{{head.disposition, `{"id": "a/b", "tgt": ["m"], "fun": "test.ping"}`}, named("a")}, 400, `id "a/b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, v := s.upload(c.parts...)
			text, _ := v["return"].(string)
			if code != c.code || !strings.Contains(strings.ToLower(text), strings.ToLower(c.want)) {
				t.Errorf("%d %v", code, v)
			}
		})
	}
	cut := "--b\r\nContent-Disposition: form-data; name=\"order\"\r\n\r\n" + head.text + "\r\n--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nxxx"
	for kind, body := range map[string]string{"multipart/form-data": cut, "multipart/form-data; boundary=b": cut, "multipart/form-data; boundary=c": cut} {
		if code, v := s.uploadRaw(kind, []byte(body)); code != 400 {
			t.Errorf("%s: %d %v", kind, code, v)
		}
	}
	for _, c := range []struct {
		job  m
		want string
	}{
		{m{"files": []any{"a"}}, "files must be a map"},
		{m{"files": m{"a": 1}}, "files must be a map"},
		{m{"files": m{"a": m{"base64": "?"}}}, "files must be a map"},
		{m{"files": m{"a": m{"base64": "AA==", "x": 1}}}, "files must be a map"},
		{m{"files": m{"a": m{}}}, "files must be a map"},
		{m{"files": m{"../a": ""}}, "is a path"},
		{m{"files": m{"a\n": ""}}, "may have letters"},
		{m{"files": m{"": ""}}, "empty name"},
		{m{"pillar": []any{}}, "pillar must be a map"},
		{m{"pillar": "x"}, "pillar must be a map"},
		{m{"secret": "yes"}, "secret must be true or false"},
		{m{"id": "a.b", "files": m{"a": ""}}, `id "a.b"`},
	} {
		job := m{"id": "o", "tgt": []any{"m"}, "fun": "test.ping"}
		for k, v := range c.job {
			job[k] = v
		}
		if code, v := s.json("POST", "/v1/jobs", job); code != 400 || !strings.Contains(strings.ToLower(fmt.Sprint(v["return"])), c.want) {
			t.Errorf("%v: %d %v", c.job, code, v)
		}
	}
	if code, v := s.json("GET", "/v1/jobs", nil); code != 200 || cmp.Diff(m{"jobs": []any{}}, v) != "" {
		t.Error("something was placed:", code, v)
	}
	contents, _ := store.ContentsOf(s.master.Store())
	if n, err := contents.ContentSize(t.Context(), ""); n != 0 || err != nil {
		t.Error("it left", n, "bytes", err)
	}
}

func TestListOfOrders(t *testing.T) {
	s := newSite(t, nil)
	for i := range 7 {
		if code, v := s.json("POST", "/v1/jobs", m{"id": fmt.Sprint("o", i), "tgt": []any{"m"}, "fun": "test.ping", "metadata": m{"even": i%2 == 0}}); code != 202 {
			t.Fatal(code, v)
		}
	}
	var got []string
	for path, n := "/v1/jobs?limit=3&metadata.even=true", 0; path != ""; n++ {
		code, v := s.json("GET", path, nil)
		list, _ := v["jobs"].([]any)
		if code != 200 || len(list) > 3 || n > 3 {
			t.Fatal(code, v)
		}
		for _, x := range list {
			got = append(got, x.(m)["id"].(string))
		}
		path = ""
		if next, ok := v["next"].(string); ok {
			path = "/v1/jobs?limit=3&metadata.even=true&after=" + next
		}
	}
	if want := []string{"o0", "o2", "o4", "o6"}; !slices.Equal(got, want) {
		t.Error(got)
	}
	many := "/v1/jobs?"
	for i := range 17 {
		many += fmt.Sprintf("metadata.%d=x&", i)
	}
	for _, path := range []string{"/v1/jobs?limit=0", "/v1/jobs?limit=1001", "/v1/jobs?limit=x", "/v1/jobs?metadata=x", "/v1/jobs?metadata.=x",
		"/v1/jobs?metadata.a=1&metadata.a=2", "/v1/jobs?order=x", strings.TrimSuffix(many, "&")} {
		if code, v := s.json("GET", path, nil); code != 400 {
			t.Error(path, code, v)
		}
	}
}

// TestListedOrdersOfOthers: a list contains the orders that the user placed, and those that rules without
// conditions would allow the user to place. It contains no arguments of secret orders.
func TestListedOrdersOfOthers(t *testing.T) {
	s := newSite(t, nil)
	limited := m{"*": []any{m{"test.arg": m{"args": []any{".*"}}}}}
	auth, err := eauth.New(eauth.Options{Match: s.master.Match, Systems: map[string]eauth.System{"file": eauth.Auto{}},
		Config: m{"file": m{"alice": []any{".*"}, "carol": []any{`test\.arg`}, "dave": []any{limited}, "erin": []any{`test\.ping`}}}})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth, o.LoginRate = auth, -1
	s.serve(o)
	as := func(user string) {
		s.token = ""
		s.token = s.login(user)
	}
	as("alice")
	for id, secret := range map[string]bool{"open": false, "hidden": true} {
		if code, v := s.json("POST", "/v1/jobs", m{"id": id, "tgt": []any{"x"}, "fun": "test.arg", "arg": []any{"the-argument"}, "secret": secret}); code != 202 || strings.Contains(jsonText(t, v), "the-argument") {
			t.Fatal(code, v)
		}
	}
	for user, want := range map[string][]string{"alice": {"hidden", "open"}, "carol": {"hidden", "open"}, "dave": nil, "erin": nil} {
		as(user)
		code, v := s.json("GET", "/v1/jobs", nil)
		var got []string
		for _, x := range v["jobs"].([]any) {
			got = append(got, x.(m)["id"].(string))
		}
		slices.Sort(got)
		if code != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v", user, code, v)
		}
		for _, id := range []string{"open", "hidden"} {
			code, v := s.json("GET", "/v1/jobs/"+id, nil)
			if (code == 200) != slices.Contains(want, id) || code != 200 && code != 404 {
				t.Errorf("%s: %s: %d %v", user, id, code, v)
			}
		}
	}
}

// TestListedOrdersOfTenants: tenants have orders of the same id and metadata, and each sees its own.
func TestListedOrdersOfTenants(t *testing.T) {
	s := tenants(t)
	as := func(user string) {
		s.token = ""
		s.token = s.login(user)
	}
	for _, user := range []string{"blue", "red"} {
		as(user)
		if code, v := s.json("POST", "/v1/minions", m{"id": user + "-1"}); code != 200 {
			t.Fatal(code, v)
		}
		if code, v := s.json("POST", "/v1/jobs", m{"id": "same", "tgt": []any{user + "-1"}, "fun": "test.ping", "metadata": m{"stack": "s"}, "files": m{"a": user}}); code != 202 {
			t.Fatal(code, v)
		}
	}
	for user, want := range map[string][]string{"blue": {"same"}, "red": {"same"}, "alice": {"blue/same", "red/same"}} {
		as(user)
		code, v := s.json("GET", "/v1/jobs?metadata.stack=s", nil)
		var got []string
		for _, x := range v["jobs"].([]any) {
			x := x.(m)
			got = append(got, x["id"].(string))
			if _, ok := x["minions"].(m)[user+"-1"]; !ok && user != "alice" {
				t.Errorf("%s sees %v", user, x)
			}
		}
		if code != 200 || !slices.Equal(got, want) {
			t.Errorf("%s: %d %v", user, code, v)
		}
	}
}
