package restapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/master/restapi"
)

// TestDescription: every endpoint is described and every described endpoint is served. Answers have the status and
// the schema of the description.
func TestDescription(t *testing.T) {
	s := newSite(t, func(o *restapi.Options) { o.Metrics, o.LoginRate = true, -1 })
	code, doc := s.json("GET", "/openapi.json", nil)
	if code != 200 || doc["openapi"] != "3.1.0" {
		t.Fatal(code)
	}
	var described, served []string
	for path, ops := range doc["paths"].(m) {
		for method := range ops.(m) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	for _, p := range s.rest.Patterns() {
		if p = strings.NewReplacer("{$}", "", "...}", "}").Replace(p); p != "DELETE /v1/jobs" { // it is 404
			served = append(served, p)
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if d := cmp.Diff(served, described); d != "" {
		t.Errorf("(-served +described)\n%s", d)
	}

	if err := s.master.Keys().Preseed("x", s.master.PublicKey()); err != nil {
		t.Fatal(err)
	}
	creds := m{"username": "alice", "password": "secret", "eauth": "file"}
	bodies := map[string][]any{ // the first is good
		"/":            {[]any{m{"client": "runner", "fun": "test.arg", "arg": []any{1, "x", nil}}, m{"client": "wheel", "fun": "key.list_all"}, m{"client": "local_async", "tgt": "x", "fun": "test.ping"}}, "text"},
		"/run":         {m{"client": "runner", "fun": "test.arg", "username": "alice", "password": "secret", "eauth": "file"}, m{"client": "nonsense"}},
		"/login":       {creds, m{"eauth": "file"}},
		"/logout":      {nil},
		"/token":       {creds, m{"eauth": "file"}},
		"/minions":     {m{"tgt": "x", "fun": "test.ping"}, m{"tgt": "x"}},
		"/keys":        {m{"mid": "new", "username": "alice", "password": "secret", "eauth": "file"}, m{"mid": "../x"}},
		"/hook":        {m{"a": 1}},
		"/hook/{path}": {m{"a": 1}},
		"/v1/minions":  {m{"id": "db-7", "events": []any{"app/done"}}, m{"id": 7}},

		"/v1/minions/{mid}/grants": {m{"add": []any{"app/done/*"}, "remove": []any{"app/done"}}, m{"add": []any{"*"}}, m{"tags": 1}},
		"/v1/jobs":                 {m{"id": "x", "tgt": []any{"db-7"}, "fun": "test.ping"}, m{"id": "x", "tgt": []any{"db-7"}, "fun": "test.echo"}, m{}},
	}
	schemas := doc["components"].(m)["schemas"].(m)
	check := func(method, path, token string, body any) {
		t.Helper()
		what := fmt.Sprintf("%s %s", method, path)
		responses := doc["paths"].(m)[path].(m)[strings.ToLower(method)].(m)["responses"].(m)
		text := ""
		if body != nil {
			text = jsonText(t, body)
		}
		s.token = token
		code, got, h := s.do(method, filled(path), "application/json", text)
		r, ok := responses[fmt.Sprint(code)].(m)
		if !ok {
			t.Errorf("%s %v: %d is not described: %.300s", what, body, code, got)
			return
		}
		content, _ := r["content"].(m)
		media, ok := content["application/json"].(m)
		if !ok || strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
			return
		}
		var v any
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			t.Errorf("%s: %d %.300s: %v", what, code, got, err)
			return
		}
		if err := conforms(v, media["schema"].(m), schemas); err != "" {
			t.Errorf("%s: %d %.300s: %s", what, code, got, err)
		}
	}
	for _, method := range []string{"POST", "GET", "DELETE"} { // what is to be looked at is made first
		if method == "GET" { // nobody waits for a minion that is not there
			if err := s.master.Keys().Delete("x"); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(doc["paths"].(m))) {
			op, ok := doc["paths"].(m)[path].(m)[strings.ToLower(method)].(m)
			if !ok || strings.HasSuffix(path, "/events") || strings.HasPrefix(path, "/ws") {
				continue // streams
			}
			list := bodies[path]
			if method != "POST" {
				list = []any{nil}
			}
			if len(list) == 0 {
				t.Errorf("%s: no body to try", path)
			}
			if text := jsonText(t, op["requestBody"]); len(list) > 0 && list[0] != nil && strings.Contains(text, "schema") {
				schema := op["requestBody"].(m)["content"].(m)["application/json"].(m)["schema"].(m)
				var v any
				_ = json.Unmarshal([]byte(jsonText(t, list[0])), &v)
				if err := conforms(v, schema, schemas); err != "" {
					t.Errorf("%s: the body %v does not conform: %s", path, list[0], err)
				}
			}
			for _, body := range list {
				check(method, path, s.loginAnew(), body)
			}
			check(method, path, "", list[0])
		}
	}
}

// loginAnew returns a separate token, which the test may revoke.
func (s *site) loginAnew() string {
	s.token = ""
	return s.login("alice")
}

// conforms checks a value with a schema, as far as the description uses them; "" is good.
func conforms(v any, schema, all m) string {
	if ref, ok := schema["$ref"].(string); ok {
		schema, ok = all[strings.TrimPrefix(ref, "#/components/schemas/")].(m)
		if !ok {
			return ref + " is not described"
		}
	}
	if list, ok := schema["oneOf"].([]any); ok {
		var why []string
		for _, x := range list {
			err := conforms(v, x.(m), all)
			if err == "" {
				return ""
			}
			why = append(why, err)
		}
		return strings.Join(why, "; ")
	}
	if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, v) {
		return fmt.Sprintf("%v is none of %v", v, list)
	}
	right := true
	switch schema["type"] {
	case "string":
		_, right = v.(string)
	case "boolean":
		_, right = v.(bool)
	case "number":
		_, right = v.(float64)
	case "integer":
		n, ok := v.(float64)
		right = ok && n == math.Trunc(n)
	case "array":
		list, ok := v.([]any)
		right = ok
		items, _ := schema["items"].(m)
		for _, x := range list {
			if err := conforms(x, items, all); err != "" {
				return err
			}
		}
	case "object":
		object, ok := v.(m)
		right = ok
		required, _ := schema["required"].([]any)
		for _, key := range required {
			if _, has := object[key.(string)]; ok && !has {
				return fmt.Sprintf("%v is missing", key)
			}
		}
		properties, _ := schema["properties"].(m)
		for key, x := range object {
			s, known := properties[key].(m)
			if !known {
				switch more := schema["additionalProperties"].(type) {
				case bool:
					return key + " is not described"
				case m:
					s = more
				}
			}
			if err := conforms(x, s, all); err != "" {
				return key + ": " + err
			}
		}
	}
	if !right {
		return fmt.Sprintf("%v is no %v", v, schema["type"])
	}
	return ""
}
