//go:build openstack

package reference

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// recorder is a server that records requests.
type recorder struct {
	mu   sync.Mutex
	seen []string // guarded by mu
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	r.seen = append(r.seen, fmt.Sprintf("%s %s type=%q length=%d %s", req.Method, req.RequestURI, req.Header["Content-Type"], req.ContentLength, body))
	r.mu.Unlock()
	if strings.HasPrefix(req.URL.Path, "/refused") {
		w.WriteHeader(http.StatusForbidden)
	}
}

func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.seen, "\n")
	r.seen = nil
	return all
}

const novaSetup = `mkdir -p /var/lib/heat-cfntools; echo '{"uuid": "0c6d0c3c-server"}' > /var/lib/heat-cfntools/nova_meta.json`

func TestCfnSignalAgainstHeatCfntools(t *testing.T) {
	needs(t)
	r := &recorder{}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	url := s.URL + "/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3Ax/w?Timestamp=2026-01-01T00%3A00%3A00Z&Signature=a%2Fb%3D"
	for _, tc := range []struct {
		name string
		args []string
		// exit has the exit codes of the original program and of brine's.
		exit [2]int
		// silent marks a call that sends no request.
		silent bool
	}{
		{name: "plain", args: []string{url}},
		{name: "exit code 0", args: []string{"-e", "0", url}},
		{name: "exit code 1", args: []string{"-e", "1", "-r", "It broke", url}},
		{name: "exit code joined", args: []string{"--exit-code=255", url}},
		{name: "old exit", args: []string{"--exit", "0", url}},
		{name: "failure", args: []string{"-s", "false", "-r", `a "quoted" reason`, url}},
		{name: "all", args: []string{"-s", "true", "-r", "wärum 漢", "-d", "line 1\nline 2\t\\", "-i", "id-7", url}},
		{name: "empty texts", args: []string{"-r", "", "-d", "", "-e", "", url}},
		{name: "empty id", args: []string{"-i", "0", "--data", "{}", url}},
		{name: "shortened options", args: []string{"--rea", "r", "--dat", "d", "--id=x", url}},
		{name: "insecure", args: []string{"-k", "-i", "x", url}},
		{name: "no url", exit: [2]int{2, 2}, silent: true},
		{name: "unknown option", args: []string{"--what", url}, exit: [2]int{2, 2}, silent: true},
		{name: "nobody listens", args: []string{"-i", "x", "http://127.0.0.1:9/"}, exit: [2]int{7, 7}, silent: true},
		{name: "refused", args: []string{"-i", "x", s.URL + "/refused"}, exit: [2]int{0, 22}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			original := runIn(t, novaSetup, "cfn-signal", tc.args, false)
			want := r.take()
			ours := runIn(t, novaSetup, "cfn-signal", tc.args, true)
			got := r.take()
			if got != want || (want == "") != tc.silent {
				t.Errorf("original %s\nours     %s", want, got)
			}
			if original.Exit != tc.exit[0] || ours.Exit != tc.exit[1] {
				t.Errorf("exit codes %d and %d, want %v\n%s", original.Exit, ours.Exit, tc.exit, ours.Output)
			}
		})
	}
}

// api returns a setup script for the CFN API of a server.
func api(url string) string {
	return "mkdir -p /var/lib/heat-cfntools /etc/cfn/hooks.d\necho " + url + " > /var/lib/heat-cfntools/cfn-metadata-server\n" +
		"printf '[Boto]\\ncfn_region_endpoint = 127.0.0.1\\n' > /var/lib/heat-cfntools/cfn-boto-cfg\n" +
		"printf 'AWSAccessKeyId=ak\\nAWSSecretKey = sk\\n' > /etc/cfn/cfn-credentials\n"
}

func TestCfnGetMetadataAgainstHeatCfntools(t *testing.T) {
	needs(t)
	server := serveFiles(t)
	apiMetadata.Store(`{"AWS::CloudFormation::Init": {"config": {"files": {"/etc/a.b": {"content": "é\n"}}}}, "n": [1, 2.5, null, true]}`)
	base := []string{"-s", "stack", "-r", "server", "--credential-file", "/etc/cfn/cfn-credentials"}
	for _, key := range []string{"", "n", "AWS::CloudFormation::Init.config", "'AWS::CloudFormation::Init'.config.files.'/etc/a.b'.content", "none", "n.x"} {
		args := base
		if key != "" {
			args = append(args[:len(args):len(args)], "-k", key)
		}
		lines := [2]string{}
		for i, ours := range []bool{false, true} {
			r := runIn(t, api(server.URL), "cfn-get-metadata", args, ours)
			if r.Exit != 0 {
				t.Errorf("key %q: exit code %d\n%s", key, r.Exit, r.Output)
			}
			lines[i] = r.Stdout + r.Files["/var/cache/heat-cfntools/last_metadata_server"]
		}
		if lines[0] != lines[1] || lines[0] == "" {
			t.Errorf("key %q\noriginal %q\nours     %q", key, lines[0], lines[1])
		}
	}
}

// TestCfnHupAgainstHeatCfntools runs cfn-hup three times in one root: with new metadata, with the same again, and
// with changed metadata.
func TestCfnHupAgainstHeatCfntools(t *testing.T) {
	needs(t)
	const first, second = `{"AWS::CloudFormation::Init": {"config": {"files": {"/x": {"content": "1"}}}}, "n": 1}`,
		`{"AWS::CloudFormation::Init": {"config": {"files": {"/x": {"content": "2"}}}}, "n": 1}`
	var mu sync.Mutex
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
		if apiMetadata.Store(first); requests%3 == 0 {
			apiMetadata.Store(second)
		}
		serveAPI(w, r)
	}))
	t.Cleanup(server.Close)
	setup := api(server.URL) + `printf '[main]\nstack=stack\ncredential-file=/etc/cfn/cfn-credentials\nregion=nova\ninterval=1\n' > /etc/cfn/cfn-hup.conf
cat > /etc/cfn/hooks.d/a.conf <<'X'
[one]
triggers=post.update
path=Resources.server.Metadata.AWS::CloudFormation::Init
action=echo one >> /opt/log; pwd >> /opt/log
runas=root
[never]
triggers=service.restarted
path=Resources.server
action=echo never >> /opt/log
runas=root
[nobody]
triggers=post.update
path=Resources.server
action=id -un >> /opt/n/log; id -Gn >> /opt/n/log
runas=nobody
X
install -d -o nobody /opt/n
printf '[two]\ntriggers=post.add,post.update\npath=Resources.server\naction=echo two >> /opt/log; exit 0\nrunas=root\n' > /etc/cfn/hooks.conf
`
	logs, users := [2]string{}, [2]string{}
	for i, ours := range []bool{false, true} {
		program := "/usr/bin/cfn-hup"
		if ours {
			program = "/run/cfn-hup"
		}
		// runIn starts the last run.
		step := program + " -f; echo exit $? >> /opt/log\n"
		r := runIn(t, setup+"cd /\n"+step+step, "cfn-hup", nil, ours)
		if logs[i] = r.Files["/opt/log"]; r.Exit != 0 {
			t.Errorf("exit code %d\n%s", r.Exit, r.Output)
		}
		users[i] = r.Files["/opt/n/log"]
	}
	// The original changes only the effective user, which Debian's shell resets, so that its hooks run as root.
	if users[0] != "-rw-r--r-- 0:0 root\nroot\nroot\nroot\n" || users[1] != "-rw-r--r-- 65534:65534 nobody\nnogroup\nnobody\nnogroup\n" {
		t.Errorf("hook of nobody: original %q, ours %q", users[0], users[1])
	}
	const want = "-rw-r--r-- 0:0 two\none\n/\nexit 0\nexit 0\ntwo\none\n/\n"
	if logs[0] != logs[1] || logs[1] != want {
		t.Errorf("original %q\nours     %q\nwant     %q", logs[0], logs[1], want)
	}
}

// TestCfnHupStartsServicesAsHeatCfntools has a service that should run and does not, one that runs, and one that need
// not run.
func TestCfnHupStartsServicesAsHeatCfntools(t *testing.T) {
	needs(t)
	server := serveFiles(t)
	tpl := &template{Units: []string{"web", "up", "any"}, Active: []string{"up"}}
	setup := tpl.prepare(server.URL) + api(server.URL) +
		"printf '[main]\\nstack=stack\\ncredential-file=/etc/cfn/cfn-credentials\\n' > /etc/cfn/cfn-hup.conf\n" +
		"printf '[r]\\ntriggers=service.restarted\\npath=Resources.server\\naction=echo started >> /opt/log\\nrunas=root\\n' > /etc/cfn/hooks.conf\n"
	apiMetadata.Store(`{"AWS::CloudFormation::Init": {"config": {"services": {"systemd": {"web": {"ensureRunning": "true"},
		"up": {"ensureRunning": "true"}, "any": {"enabled": "true"}}}}}}`)
	for _, ours := range []bool{false, true} {
		r := runIn(t, setup, "cfn-hup", nil, ours)
		_, web := r.Files["/var/fake/active/web"]
		_, any := r.Files["/var/fake/active/any"]
		if r.Exit != 0 || !web || any || r.Files["/opt/log"] != "-rw-r--r-- 0:0 started\n" {
			t.Errorf("ours %v: exit code %d, web %v, any %v, log %q\n%s", ours, r.Exit, web, any, r.Files["/opt/log"], r.Output)
		}
	}
}
