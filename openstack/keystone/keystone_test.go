package keystone_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brine-salt/brine/openstack/keystone"
)

// TestCheckRefuses: Keystone's response decides; a failure of Keystone is not a denial.
func TestCheckRefuses(t *testing.T) {
	var login, check int
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("X-Subject-Token", "own")
			w.WriteHeader(login)
			return
		}
		if r.Header.Get("X-Auth-Token") != "own" || r.Header.Get("X-Subject-Token") != "good" {
			t.Error(r.Header)
		}
		w.WriteHeader(check)
		w.Write([]byte(body))
	}))
	defer s.Close()
	const nova = `{"token": {"user": {"id": "u", "name": "nova"}, "project": {"id": "p", "name": "service"}, "roles": [{"name": "service"}], "expires_at": "2030-01-01T00:00:00.000000Z"}}`
	c := keystone.Config{URL: s.URL + "/v3/", User: "brine", Password: "x", Project: "service", Roles: []string{"service"}}
	narrow := c
	narrow.Users = []string{"heat"}
	other := c
	other.Roles = []string{"admin"}
	for name, x := range map[string]struct {
		c            keystone.Config
		login, check int
		body, token  string
		denied       bool
		want         string
	}{
		"good":        {c, 201, 200, nova, "good", false, ""},
		"unknown":     {c, 201, 404, "{}", "good", true, "does not know it"},
		"role":        {other, 201, 200, nova, "good", true, "none of the roles admin"},
		"user":        {narrow, 201, 200, nova, "good", true, "the user is nova"},
		"form":        {c, 201, 200, nova, "a\r\nb", true, "form"},
		"empty":       {c, 201, 200, nova, "", true, "form"},
		"credentials": {c, 401, 200, nova, "good", false, "401 Unauthorized to the log-in of brine"},
		"forbidden":   {c, 201, 403, "{}", "good", false, "403 Forbidden"},
		"broken":      {c, 201, 200, "<html>", "good", false, "cannot read keystone's answer"},
		"nothing":     {c, 201, 200, "{}", "good", false, "cannot read keystone's answer"},
	} {
		login, check, body = x.login, x.check, x.body
		id, err := keystone.Check(t.Context(), x.c, x.token)
		switch {
		case x.want == "":
			if err != nil || id.User != "nova" || id.Project != "service" || id.Expires.Year() != 2030 {
				t.Errorf("%s: %+v %v", name, id, err)
			}
		case err == nil || errors.Is(err, keystone.ErrDenied) != x.denied || !strings.Contains(err.Error(), x.want):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	const full = "# nova\nexport OS_AUTH_URL=http://k\nOS_USERNAME=brine\nOS_PASSWORD='a=b'\nOS_PROJECT_NAME=service\n"
	write(full+"ALLOW_USERS=nova, heat\n", 0o640)
	c, err := keystone.ReadConfig(path)
	if err != nil || c.Password != "a=b" || len(c.Users) != 2 || len(c.Roles) != 2 {
		t.Errorf("%+v %v", c, err)
	}
	for text, want := range map[string]string{full + "nonsense\n": "line 6: want NAME=value", "OS_AUTH_URL=x\nOS_USERNAME=x\nOS_PROJECT_NAME=x\n": "OS_PASSWORD is not set"} {
		write(text, 0o600)
		if _, err := keystone.ReadConfig(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	write(full, 0o604)
	if _, err := keystone.ReadConfig(path); err == nil || !strings.Contains(err.Error(), "others can read") {
		t.Error(err)
	}
}
