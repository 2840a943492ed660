package restapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
)

// TestNativeMinions: a minion is announced twice, listed, looked at and revoked.
func TestNativeMinions(t *testing.T) {
	s := newSite(t, nil)
	spec := m{"id": "db-7", "tenant": "blue", "grains": m{"role": "db"}, "token_ttl": 600, "events": []any{"app/db/*"}}
	code, first := s.json("POST", "/v1/minions", spec)
	if code != 200 || first["id"] != "db-7" || first["tenant"] != "blue" {
		t.Fatal(code, first)
	}
	for form, part := range map[string]string{"cloud_config": "#cloud-config\n", "cloud_config_files": "#cloud-config\n", "powershell": "#ps1", "json": `"join_token"`, "env": "SALT"} {
		if text, _ := first[form].(string); !strings.Contains(text, part) || !strings.Contains(text, "salt.example") && form != "powershell" && form != "cloud_config_files" {
			t.Errorf("%s: %s", form, text)
		}
	}
	if code, again := s.json("POST", "/v1/minions", spec); code != 200 || again["json"] != first["json"] {
		t.Errorf("announced again: %d %s", code, cmp.Diff(first, again))
	}
	want := m{"id": "db-7", "tenant": "blue", "joined": false, "present": false, "grains": m{"role": "db"}, "events": []any{"app/db/*"}}
	if code, v := s.json("GET", "/v1/minions", nil); code != 200 || cmp.Diff(m{"minions": []any{want}}, v) != "" {
		t.Error(code, v)
	}
	if code, v := s.json("GET", "/v1/minions/db-7", nil); code != 200 || cmp.Diff(want, v) != "" {
		t.Error(code, v)
	}
	for _, c := range []struct {
		path string
		body m
		code int
		want any
	}{
		{"db-7", m{"add": []any{"heat/signal/1", "heat/signal/1"}, "remove": []any{"app/db/*"}}, 200, []any{"heat/signal/1"}},
		{"db-7", m{}, 200, []any{"heat/signal/1"}},
		{"db-7", m{"add": []any{"salt/auth"}}, 400, nil},
		{"db-7", m{"add": []any{"heat/*"}}, 400, nil},
		{"db-7", m{"add": []any{"*"}}, 400, nil},
		{"db-7", m{"add": []any{"plain"}}, 400, nil},
		{"db-7", m{"add": []any{"brine/minion/db-7/x"}}, 400, nil},
		{"db-7", m{"add": "heat/signal/1"}, 400, nil},
		{"db-7", m{"added": []any{}}, 400, nil},
		{"db-8", m{"add": []any{"heat/signal/1"}}, 404, nil},
		{"..%2fx", m{}, 404, nil},
	} {
		code, v := s.json("POST", "/v1/minions/"+c.path+"/grants", c.body)
		if code != c.code || cmp.Diff(c.want, v["events"]) != "" {
			t.Errorf("%s %v: %d %v", c.path, c.body, code, v)
		}
	}
	for _, id := range []string{"db-8", "..%2fx", "%00"} {
		if code, v := s.json("GET", "/v1/minions/"+id, nil); code != 404 {
			t.Error(id, code, v)
		}
	}
	if code, v := s.json("DELETE", "/v1/minions/db-7", nil); code != 200 {
		t.Error(code, v)
	}
	if code, v := s.json("GET", "/v1/minions/db-7", nil); code != 404 {
		t.Error(code, v)
	}
}

// TestNativeJobs: a job for a minion that is not there waits, is the same when it is placed again, and can be ended.
func TestNativeJobs(t *testing.T) {
	s := newSite(t, nil)
	job := m{"id": "release/7", "tgt": []any{"db-7"}, "fun": "state.apply", "arg": []any{"database"}, "kwarg": m{"test": true}, "ttl": 3600, "priority": 5,
		"deadline": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	code, first := s.json("POST", "/v1/jobs", job)
	if code != 202 || first["id"] != "release/7" || first["done"] != false || cmp.Diff(m{"db-7": m{"status": "queued"}}, first["minions"]) != "" {
		t.Fatal(code, first)
	}
	if code, v := s.json("POST", "/v1/jobs", job); code != 202 || cmp.Diff(first, v) != "" {
		t.Errorf("placed again: %d %s", code, cmp.Diff(first, v))
	}
	job["arg"] = []any{"other"}
	if code, v := s.json("POST", "/v1/jobs", job); code != 409 || v["return"] != "Another job has this id" {
		t.Error(code, v)
	}
	if code, v := s.json("GET", "/v1/jobs/release/7?wait=0.05", nil); code != 200 || cmp.Diff(first, v) != "" {
		t.Error(code, v)
	}
	ended := make(chan m)
	go func() {
		_, v := s.json("GET", "/v1/jobs/release/7?wait=300", nil)
		ended <- v
	}()
	if code, v := s.json("DELETE", "/v1/jobs/release%2f7", nil); code != 200 || v["done"] != true {
		t.Error(code, v)
	}
	v := <-ended
	if x, _ := v["minions"].(m)["db-7"].(m); v["done"] != true || v["success"] != false || x["status"] != "cancelled" {
		t.Error(v)
	}
	if code, v := s.json("POST", "/v1/jobs", m{"id": "late", "tgt": []any{"db-7"}, "fun": "test.ping", "deadline": 1000}); code != 202 {
		t.Error(code, v)
	}
	if code, v := s.json("GET", "/v1/jobs/late?wait=300", nil); code != 200 || v["minions"].(m)["db-7"].(m)["status"] != "undeliverable" {
		t.Error(code, v)
	}
	for _, path := range []string{"/v1/jobs/none", "/v1/jobs/..%2f..%2fetc", "/v1/jobs/" + strings.Repeat("x", 5000)} {
		if code, v := s.json("GET", path, nil); code != 404 {
			t.Errorf("%.40s: %d %v", path, code, v)
		}
	}
	for _, wait := range []string{"long", "nan", "-1", "1e400"} {
		if code, v := s.json("GET", "/v1/jobs/late?wait="+wait, nil); code != 400 {
			t.Errorf("wait=%s: %d %v", wait, code, v)
		}
	}
}

// TestWaitOfClients: the Python client's waits, as it writes the numbers, for orders with ids such as the Heat
// plugin's. All clients that wait for an order get its end, even if one of them disconnects.
func TestWaitOfClients(t *testing.T) {
	s := newSite(t, nil)
	const id = "heat-0ff0c013-a54b-4a5f-88c0-dc06d0248156-web_1-0123456789abcdef"
	if code, v := s.json("POST", "/v1/jobs", m{"id": id, "tgt": []any{"db-7"}, "fun": "test.ping", "ttl": 3600.5}); code != 202 {
		t.Fatal(code, v)
	}
	for _, wait := range []string{"1e-05", "0.01", "0.333333"} {
		if code, v := s.json("GET", "/v1/jobs/"+id+"?wait="+wait, nil); code != 200 || v["done"] != false {
			t.Errorf("wait=%s: %d %v", wait, code, v)
		}
	}
	gone, hangUp := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer hangUp()
	q, err := http.NewRequestWithContext(gone, http.MethodGet, s.server.URL+"/v1/jobs/"+id+"?wait=60", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Auth-Token", s.token)
	if r, err := http.DefaultClient.Do(q); err == nil {
		r.Body.Close()
		t.Errorf("the wait ended before the order: %s", r.Status)
	}
	ended := make(chan m)
	for range 5 {
		go func() {
			_, v := s.json("GET", "/v1/jobs/"+id+"?wait=60", nil)
			ended <- v
		}()
	}
	if code, v := s.json("DELETE", "/v1/jobs/"+id, nil); code != 200 {
		t.Fatal(code, v)
	}
	for range 5 {
		if v := <-ended; v["done"] != true || cmp.Diff("cancelled", v["minions"].(m)["db-7"].(m)["status"]) != "" {
			t.Errorf("a wait ended with %v", v)
		}
	}
}

// TestBusyMaster: a master with too many unfinished deliveries accepts no new order, says when to retry, and still
// finds those that it accepted.
func TestBusyMaster(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) {
		busy, err := master.New(master.Options{Network: master.NetworkOptions{Interface: "127.0.0.1"}, Keys: master.KeyOptions{Size: 2048}, Orders: master.OrderOptions{MaxUnfinished: 1}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(busy.Close)
		o.Master = busy
	})
	one, two := `{"id": "one", "tgt": ["m"], "fun": "test.ping"}`, `{"id": "two", "tgt": ["m"], "fun": "test.ping"}`
	for _, c := range []struct {
		body        string
		code        int
		text, again string
	}{
		{one, 202, `"id": "one"`, ""}, {two, 503, `{"return": "Too many jobs are unfinished", "status": 503}`, "5"}, {one, 202, `"id": "one"`, ""},
	} {
		code, text, header := s.do("POST", "/v1/jobs", "application/json", c.body)
		if code != c.code || !strings.Contains(text, c.text) || header.Get("Retry-After") != c.again {
			t.Errorf("%s: %d %s %v", c.body, code, text, header)
		}
	}
}

// TestNativeRefusals: the answer says what is wrong with a body, and no order is placed.
func TestNativeRefusals(t *testing.T) {
	s := newSite(t, nil)
	good := func(change m) m {
		v := m{"tgt": []any{"db-7"}, "fun": "test.ping"}
		for k, x := range change {
			v[k] = x
		}
		return v
	}
	for _, c := range []struct {
		path string
		body any
		text string
	}{
		{"/v1/jobs", []any{good(nil)}, "The body must be a map"},
		{"/v1/jobs", nil, "The body must be a map"},
		{"/v1/jobs", good(m{"functoin": "x"}), `There is no field "functoin"`},
		{"/v1/jobs", good(m{"fun": nil}), "fun must be"},
		{"/v1/jobs", good(m{"fun": []any{"test.ping"}}), "fun must be"},
		{"/v1/jobs", good(m{"tgt": 5}), "tgt must be"},
		{"/v1/jobs", good(m{"tgt": "*"}), "No minions matched"},
		{"/v1/jobs", good(m{"tgt_type": "nonsense"}), "nonsense"},
		{"/v1/jobs", good(m{"tgt_type": 5}), "tgt_type must be text"},
		{"/v1/jobs", good(m{"id": 5}), "id must be text"},
		{"/v1/jobs", good(m{"id": strings.Repeat("x", 5000)}), "id must be of at most"},
		{"/v1/jobs", good(m{"jid": "x"}), "jid must be"},
		{"/v1/jobs", good(m{"ttl": "long"}), "ttl must be"},
		{"/v1/jobs", good(m{"ttl": -1}), "ttl must be"},
		{"/v1/jobs", good(m{"deadline": "soon"}), "deadline must be"},
		{"/v1/jobs", good(m{"deadline": -5}), "deadline must be"},
		{"/v1/jobs", good(m{"priority": 1.5}), "priority must be"},
		{"/v1/jobs", good(m{"priority": int64(1) << 40}), "priority must be"},
		{"/v1/jobs", good(m{"parallel": "yes"}), "parallel must be"},
		{"/v1/jobs", good(m{"kwarg": []any{}}), "kwarg must be"},
		{"/v1/minions", m{}, "id must be a minion id"},
		{"/v1/minions", m{"id": "../x"}, "id must be a minion id"},
		{"/v1/minions", m{"id": "x", "grains": []any{}}, "grains must be a map"},
		{"/v1/minions", m{"id": "x", "masters": []any{1}}, "masters must be a list of texts"},
		{"/v1/minions", m{"id": "x", "public_key": "none"}, "cannot announce"},
		{"/v1/minions", m{"id": "x", "key_pair": true, "public_key": "x"}, "both KeyPair and PublicKey"},
	} {
		if code, v := s.json("POST", c.path, c.body); code != 400 || !strings.Contains(v["return"].(string), c.text) {
			t.Errorf("%s %v: %d %v", c.path, c.body, code, v)
		}
	}
	if code, v := s.json("GET", "/v1/minions", nil); code != 200 || cmp.Diff(m{"minions": []any{}}, v) != "" {
		t.Error(code, v)
	}
	s.token = s.login("bob") // who may do nothing of the kind
	for _, c := range [][2]string{{"POST", "/v1/minions"}, {"GET", "/v1/minions"}, {"DELETE", "/v1/minions/x"}, {"POST", "/v1/jobs"}, {"GET", "/v1/jobs/x"}, {"DELETE", "/v1/jobs/x"}} {
		want := 401
		if strings.HasPrefix(c[1], "/v1/jobs/") {
			want = 404 // as for everybody
		}
		if code, v := s.json(c[0], c[1], good(nil)); code != want {
			t.Error(c, code, v)
		}
	}
}

// tenants is a site where alice sees everything, blue is the user of tenant blue and red that of tenant red.
func tenants(t *testing.T) *site {
	s := newSite(t, nil)
	rules := []any{".*", "@runner", "@wheel"}
	whose, err := eauth.TenantRules(m{"alice": "", "blue": "blue", "red": "red"})
	if err != nil {
		t.Fatal(err)
	}
	auth, err := eauth.New(eauth.Options{Match: s.master.Match, Systems: map[string]eauth.System{"file": eauth.Auto{}},
		Config: m{"file": m{"alice": rules, "blue": rules, "red": rules, "green": rules}}, Tenant: whose})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth, o.LoginRate = auth, -1
	s.options = o
	s.serve(o)
	return s
}

// TestTenantsOverHTTP: a tenant's user sees that tenant's minions, jobs and events in both interfaces, and may do
// nothing else.
func TestTenantsOverHTTP(t *testing.T) {
	s := tenants(t)
	as := func(user, method, path string, body any) (int, m) {
		t.Helper()
		s.token = ""
		s.token = s.login(user)
		return s.json(method, path, body)
	}
	for _, id := range []string{"blue-1", "red-1"} {
		user, _, _ := strings.Cut(id, "-")
		if code, v := as(user, "POST", "/v1/minions", m{"id": id}); code != 200 || v["tenant"] != user {
			t.Fatal(code, v)
		}
		if err := s.master.Keys().Preseed(id, s.master.PublicKey()); err != nil {
			t.Fatal(err)
		}
	}
	s.token = ""
	if code, v := s.json("POST", "/login", m{"eauth": "file", "username": "green", "password": "x"}); code != 401 {
		t.Error("who is of no tenant is let in:", code, v)
	}
	if code, v := as("red", "POST", "/v1/minions", m{"id": "blue-1"}); code != 400 {
		t.Error("another tenant's minion is announced:", code, v)
	}
	if code, v := as("red", "POST", "/v1/minions", m{"id": "red-2", "tenant": "blue"}); code != 400 {
		t.Error("a minion is announced for another tenant:", code, v)
	}
	for user, want := range map[string]int{"red": 1, "blue": 1, "alice": 2} {
		if code, v := as(user, "GET", "/v1/minions", nil); code != 200 || len(v["minions"].([]any)) != want {
			t.Error(user, code, v)
		}
	}
	for _, c := range [][2]string{{"GET", "/v1/minions/blue-1"}, {"DELETE", "/v1/minions/blue-1"}} {
		if code, v := as("red", c[0], c[1], nil); code != 404 {
			t.Error(c, code, v)
		}
	}
	// Jobs of the interface like Salt's.
	code, v := as("red", "POST", "/", m{"client": "local_async", "tgt": "*", "fun": "test.ping"})
	job, _ := v["return"].([]any)[0].(m)
	if code != 200 || cmp.Diff([]any{"red-1"}, job["minions"]) != "" {
		t.Fatal(code, v)
	}
	jid := job["jid"].(string)
	for _, low := range []m{{"client": "local_async", "tgt": "blue-1", "fun": "test.ping"}, {"client": "local", "tgt": "blue*", "fun": "test.ping"},
		{"client": "local_batch", "tgt": "blue-1", "fun": "test.ping", "batch": "1"}, {"client": "local_async", "tgt": []any{"blue-1"}, "fun": "test.ping"}} {
		if code, v := as("red", "POST", "/", low); code != 200 || strings.Contains(jsonText(t, v), "jid") {
			t.Error(low, code, v)
		}
	}
	for user, mine := range map[string]bool{"red": true, "blue": false, "alice": true} {
		code, v := as(user, "GET", "/jobs", nil)
		if _, ok := v["return"].([]any)[0].(m)[jid]; code != 200 || ok != mine {
			t.Errorf("%s: the job is listed: %v (%d)", user, ok, code)
		}
		code, v = as(user, "GET", "/jobs/"+jid, nil)
		if _, ok := v["info"].([]any)[0].(m)["Function"]; code != 200 || ok != mine {
			t.Errorf("%s: the job is shown: %v (%d %v)", user, ok, code, v)
		}
	}
	for _, c := range [][2]string{{"GET", "/keys"}, {"GET", "/keys/red-1"}, {"POST", "/keys"}, {"GET", "/stats"}, {"POST", "/hook/x"}} {
		if code, v := as("red", c[0], c[1], m{"mid": "red-9", "token": s.token}); code != 401 {
			t.Error(c, code, v)
		}
	}
	for _, client := range []string{"runner", "runner_async", "wheel", "wheel_async"} {
		for _, fun := range []string{"test.arg", "jobs.active", "cache.grains", "key.list_all", "salt.execute"} {
			if code, v := as("red", "POST", "/", m{"client": client, "fun": fun}); code != 401 && code != 400 {
				t.Error(client, fun, code, v)
			}
		}
	}
	// Orders.
	for _, user := range []string{"red", "blue"} {
		if code, v := as(user, "POST", "/v1/jobs", m{"id": "x", "tgt": "*", "fun": "test.ping", "arg": []any{user}}); code != 202 || v["id"] != "x" ||
			len(v["minions"].(m)) != 1 || v["minions"].(m)[user+"-1"] == nil {
			t.Error(user, code, v)
		}
	}
	if code, v := as("red", "POST", "/v1/jobs", m{"id": "y", "tgt": []any{"blue-1", "nobody"}, "fun": "test.ping"}); code != 202 ||
		v["minions"].(m)["blue-1"].(m)["status"] != "refused" || v["minions"].(m)["nobody"].(m)["status"] != "refused" {
		t.Error(code, v)
	}
	for _, id := range []string{"y", "red/x", "../red/x"} {
		if code, v := as("blue", "GET", "/v1/jobs/"+url.PathEscape(id), nil); code != 404 {
			t.Error(id, code, v)
		}
	}
	// Events: minions of both tenants fire some; a tenant receives only its own.
	for _, path := range []string{"/events", "/v1/events?tag=about/*"} {
		s.token = ""
		s.token = s.login("red")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", s.token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		if !lines.Scan() || resp.StatusCode != 200 { // "retry: 400": it follows
			t.Fatal(path, resp.StatusCode)
		}
		s.master.Events().Publish("about/blue", m{"id": "blue-1"})
		s.master.Events().Publish("about/all", m{"n": int64(1)})
		s.master.Events().Publish("about/red", m{"id": "red-1"})
		for lines.Scan() {
			if tag, ok := strings.CutPrefix(lines.Text(), "tag: "); ok {
				if tag != "about/red" {
					t.Errorf("%s: red hears of %s", path, tag)
				}
				break
			}
		}
		if lines.Err() != nil {
			t.Error(path, lines.Err())
		}
		resp.Body.Close()
		cancel()
	}
}

// TestNativeEventsGoOn: a client that reconnects with a cursor misses no event.
func TestNativeEventsGoOn(t *testing.T) {
	s := newSite(t, nil)
	cursor := s.master.FollowCursor()
	s.master.Events().Publish("a/1", m{"n": int64(1)})
	s.master.Events().Publish("b/1", m{"n": int64(2)})
	s.master.Events().Publish("a/2", m{"n": int64(3)})
	var got []string
	for range 2 { // one event for each connection
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+"/v1/events?tag=a/*&tag=c/*&cursor="+url.QueryEscape(cursor), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", s.token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				cursor = id
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				got = append(got, text)
				break
			}
		}
		resp.Body.Close()
		cancel()
	}
	for i, tag := range []string{"a/1", "a/2"} {
		if i >= len(got) || !strings.Contains(got[i], `"tag": "`+tag+`"`) {
			t.Fatal(got)
		}
	}
	if code, v := s.json("GET", "/v1/events?since=1", nil); code != 400 {
		t.Error(code, v)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNarrowTargets: for a user with rules for some minions, a target that minions would match by their own data is
// published as the list of minions that it matches on the master. Rules for runners make no order visible.
func TestNarrowTargets(t *testing.T) {
	s := newSite(t, nil)
	auth, err := eauth.New(eauth.Options{Match: s.master.Match, Systems: map[string]eauth.System{"file": eauth.Auto{}},
		Config: m{"file": m{"alice": []any{".*"}, "carol": []any{m{"web*": []any{"test.*"}}, "@jobs"}}}})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth = auth
	s.serve(o)
	for _, id := range []string{"web1", "db1"} {
		if err := s.master.Keys().Preseed(id, s.master.PublicKey()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ user, tgt, tgtType, want string }{
		{"alice", "web1 or G@os:Debian", "compound", "compound"}, {"carol", "web1 or G@os:Debian", "compound", "list"}, {"carol", "web*", "glob", "glob"},
		{"carol", "web1 or db1", "compound", ""}, {"carol", "*", "glob", ""},
	} {
		s.token = ""
		s.token = s.login(c.user)
		code, v := s.json("POST", "/", m{"client": "local_async", "tgt": c.tgt, "tgt_type": c.tgtType, "fun": "test.ping"})
		if c.want == "" {
			if code != 401 {
				t.Error(c, code, v)
			}
			continue
		}
		list, _ := v["return"].([]any)
		if code != 200 || len(list) != 1 {
			t.Fatal(c, code, v)
		}
		jid, _ := list[0].(m)["jid"].(string)
		if j, err := s.master.Store().Job(t.Context(), jid); err != nil || j.TgtType != c.want || cmp.Diff([]string{"web1"}, j.Minions) != "" {
			t.Error(c, j, err)
		}
	}
}

// TestOrdersOfOthers: an order can be read and ended by the user who placed it, and by users who could have placed
// it. For all others, whatever else they may do, it does not exist.
func TestOrdersOfOthers(t *testing.T) {
	s := newSite(t, nil)
	args := func(pattern string) m { return m{"test.echo": m{"args": []any{pattern}}} }
	auth, err := eauth.New(eauth.Options{Match: s.master.Match, Systems: map[string]eauth.System{"file": eauth.Auto{}, "auto": eauth.Auto{}}, Config: m{
		"file": m{"owner": []any{"test.*"}, "boss": []any{".*"}, "same": []any{`test\.echo`}, "other": []any{`test\.ping`}, "runner": []any{"@runner", "@wheel", "@jobs"},
			"narrow": []any{m{"*": []any{args("hello")}}}, "none": []any{}},
		"auto": m{"owner": []any{`cmd\..*`}}}})
	if err != nil {
		t.Fatal(err)
	}
	o := s.options
	o.Auth, o.LoginRate = auth, -1
	s.serve(o)
	as := func(system, user, method, path string, body any) (int, m) {
		t.Helper()
		s.token = ""
		code, v := s.json("POST", "/login", m{"eauth": system, "username": user, "password": "x"})
		if code != 200 {
			t.Fatal(user, code, v)
		}
		s.token = v["return"].([]any)[0].(m)["token"].(string)
		return s.json(method, path, body)
	}
	order := m{"id": "hello", "tgt": []any{"nobody-yet"}, "fun": "test.echo", "arg": []any{"hello"}, "kwarg": m{"x": "y"}}
	if code, v := as("file", "owner", "POST", "/v1/jobs", order); code != 202 {
		t.Fatal(code, v)
	}
	// The same order again is its owner's only.
	for _, c := range []struct {
		system, user string
		want         int
	}{{"file", "owner", 202}, {"file", "boss", 409}, {"auto", "owner", 401}, {"file", "narrow", 401}} {
		if code, v := as(c.system, c.user, "POST", "/v1/jobs", order); code != c.want {
			t.Error(c, code, v)
		}
	}
	for _, c := range []struct {
		system, user string
		sees         bool
	}{{"file", "owner", true}, {"file", "boss", true}, {"file", "same", true}, {"file", "other", false}, {"file", "runner", false}, {"file", "narrow", false},
		{"file", "none", false}, {"auto", "owner", false}} {
		want := 404
		if c.sees {
			want = 200
		}
		for _, path := range []string{"/v1/jobs/hello", "/v1/jobs/hello?wait=0.01"} {
			if code, v := as(c.system, c.user, "GET", path, nil); code != want {
				t.Error(c, path, code, v)
			}
		}
		if !c.sees {
			if code, v := as(c.system, c.user, "DELETE", "/v1/jobs/hello", nil); code != 404 {
				t.Error(c, code, v)
			}
		}
	}
	code, v := as("file", "same", "GET", "/v1/jobs/hello", nil)
	if status := v["minions"].(m)["nobody-yet"].(m)["status"]; code != 200 || status != "queued" {
		t.Error("somebody ended it:", code, v)
	}
	code, v = as("file", "same", "DELETE", "/v1/jobs/hello", nil)
	if status := v["minions"].(m)["nobody-yet"].(m)["status"]; code != 200 || status != "cancelled" {
		t.Error(code, v)
	}
}

// TestKeptEventsOverHTTP: kept events are listed and forgotten by tag; ids that were not announced are unknown.
func TestKeptEventsOverHTTP(t *testing.T) {
	s := newSite(t, nil)
	if code, v := s.json("POST", "/v1/minions", m{"id": "db-7"}); code != 200 {
		t.Fatal(code, v)
	}
	for _, c := range []struct {
		method, path string
		code         int
		want         m
	}{
		{"GET", "/v1/minions/db-7/events", 200, m{"events": []any{}}},
		{"GET", "/v1/minions/db-7/events?tag=x", 200, m{"events": []any{}}},
		{"GET", "/v1/minions/db-8/events", 404, nil},
		{"DELETE", "/v1/minions/db-7/events", 400, nil},
		{"DELETE", "/v1/minions/db-7/events?tag=x", 200, m{"id": "db-7", "forgotten": float64(0)}},
		{"DELETE", "/v1/minions/..%2fx/events?tag=x", 404, nil},
	} {
		code, v := s.json(c.method, c.path, nil)
		if code != c.code || c.want != nil && cmp.Diff(c.want, m(v)) != "" {
			t.Errorf("%s %s: %d %v", c.method, c.path, code, v)
		}
	}
}
