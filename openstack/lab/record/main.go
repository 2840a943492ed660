//go:build linux

// Record writes the responses of the real services to a guest's requests: the four ways to poll metadata, the ways to
// signal a deployment, and wait handles. It starts a lab and writes one file for each request:
//
//	go run ./lab/record -to heat/testdata/recorded
//
// NO_SIGNAL makes no request. The addresses, tokens and passwords in the files belong to the lab, which no longer
// exists.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/brine-salt/brine/openstack/internal/ec2sign"
	"github.com/brine-salt/brine/openstack/lab"
)

//go:embed template.yaml
var template string

// An exchange is the content of a recorded file.
type exchange struct {
	Service  string  `json:"service"`
	Version  string  `json:"version"`
	Request  message `json:"request"`
	Response message `json:"response"`
}

type message struct {
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path,omitempty"` // with the query
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

type recorder struct {
	dir      string
	versions map[string]string
}

// packages lists the Debian packages of the services.
var packages = map[string]string{"heat-api": "heat-api", "heat-api-cfn": "heat-api-cfn", "swift-proxy": "swift-proxy", "zaqar-server": "zaqar-server",
	"keystone": "keystone"}

func main() {
	log.SetFlags(0)
	to := flag.String("to", "heat/testdata/recorded", "directory for the files")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := run(ctx, *to); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	r := &recorder{dir: dir, versions: map[string]string{}}
	for service, pkg := range packages {
		out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${Version}", pkg).Output()
		if err != nil {
			return fmt.Errorf("cannot find the version of %s: %w", pkg, err)
		}
		r.versions[service] = string(out)
	}
	l, err := lab.Start(ctx, lab.Options{Zaqar: true, Logf: log.Printf})
	if err != nil {
		return err
	}
	defer func() {
		if e := l.Close(); err == nil {
			err = e
		}
	}()
	const stack = "recorded"
	if _, err := l.Heat.Create(ctx, stack, template, lab.StackArgs{}); err != nil {
		return err
	}
	for _, name := range []string{"d_cfn", "d_heat", "d_temp", "d_zaqar", "d_none", "handle", "handle_cfn"} {
		if _, err := l.Heat.WaitResource(ctx, stack, name, func(r *lab.Resource) bool {
			return r != nil && r.PhysicalID != "" && (r.Status == "CREATE_IN_PROGRESS" || r.Status == "CREATE_COMPLETE")
		}); err != nil {
			return err
		}
	}
	metadata := map[string]server{}
	for _, name := range []string{"cfn", "heat", "temp", "zaqar"} {
		s, err := readServer(ctx, l, stack, name)
		if err != nil {
			return err
		}
		metadata[name] = s
	}
	for _, f := range []func(context.Context, *lab.Lab, map[string]server) error{r.polls, r.messages, r.signals, r.handles} {
		if err := f(ctx, l, metadata); err != nil {
			return err
		}
	}
	// Heat cannot read ZAQAR_SIGNAL here: python-zaqarclient 2.4.0 does not know the field client_uuid that zaqar's
	// swift store adds. The others must complete.
	for _, name := range []string{"d_cfn", "d_heat", "d_temp"} {
		if _, err := l.Heat.WaitResource(ctx, stack, name, func(r *lab.Resource) bool {
			return r != nil && r.Status == "CREATE_COMPLETE"
		}); err != nil {
			return err
		}
	}
	return nil
}

// A server is the metadata of one server.
type server struct {
	Collect     map[string]map[string]any `json:"-"`
	Deployments []struct {
		ID     string
		Inputs []struct {
			Name  string
			Value any
		}
	}
}

func readServer(ctx context.Context, l *lab.Lab, stack, name string) (server, error) {
	var s server
	m, err := l.Heat.Metadata(ctx, stack, "s_"+name)
	if err != nil {
		return s, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, err
	}
	s.Collect = map[string]map[string]any{}
	all, _ := m["os-collect-config"].(map[string]any)
	for section, v := range all {
		if values, ok := v.(map[string]any); ok {
			s.Collect[section] = values
		}
	}
	return s, nil
}

func (s server) get(section, name string) string { return fmt.Sprint(s.Collect[section][name]) }

// input returns an input of the deployment that is signalled through a transport.
func (s server) input(transport, name string) string {
	for _, d := range s.Deployments {
		in := map[string]any{}
		for _, i := range d.Inputs {
			in[i.Name] = i.Value
		}
		if in["deploy_signal_transport"] == transport {
			return fmt.Sprint(in[name])
		}
	}
	return ""
}

// polls records the four ways to get metadata.
func (r *recorder) polls(ctx context.Context, l *lab.Lab, m map[string]server) error {
	cfn := m["cfn"]
	u, err := url.Parse(cfn.get("cfn", "metadata_url"))
	if err != nil {
		return err
	}
	resource, _, _ := strings.Cut(cfn.get("cfn", "path"), ".")
	keys := ec2sign.Credentials{Access: cfn.get("cfn", "access_key_id"), Secret: cfn.get("cfn", "secret_access_key")}
	signed := keys.URL(http.MethodGet, u, ec2sign.DescribeStackResource(cfn.get("cfn", "stack_name"), resource), time.Now())
	accept := map[string]string{"Content-Type": "application/json", "Accept": "application/json"}
	if _, err := r.do(ctx, "heat-api-cfn", "metadata", http.MethodGet, signed.String(), accept, ""); err != nil {
		return err
	}
	keys.Secret = "wrong"
	wrong := keys.URL(http.MethodGet, u, ec2sign.DescribeStackResource(cfn.get("cfn", "stack_name"), resource), time.Now())
	if _, err := r.do(ctx, "heat-api-cfn", "metadata-wrong-secret", http.MethodGet, wrong.String(), accept, ""); err != nil {
		return err
	}
	h := m["heat"].Collect["heat"]
	token, project, err := r.token(ctx, "token-heat", h)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("%s/v1/%s/stacks/%v/resources/%v/metadata", l.HeatURL(), project, h["stack_id"], h["resource_name"])
	if _, err := r.do(ctx, "heat-api", "metadata", http.MethodGet, address, map[string]string{"X-Auth-Token": token}, ""); err != nil {
		return err
	}
	if _, err := r.do(ctx, "heat-api", "metadata-wrong-token", http.MethodGet, address, map[string]string{"X-Auth-Token": "wrong"}, ""); err != nil {
		return err
	}
	address = m["temp"].get("request", "metadata_url")
	res, err := r.do(ctx, "swift-proxy", "metadata", http.MethodGet, address, nil, "")
	if err != nil {
		return err
	}
	for name, header := range map[string]map[string]string{
		"metadata-etag":  {"If-None-Match": res.Headers["Etag"]},
		"metadata-since": {"If-Modified-Since": res.Headers["Last-Modified"]},
	} {
		if _, err := r.do(ctx, "swift-proxy", name, http.MethodGet, address, header, ""); err != nil {
			return err
		}
	}
	_, err = r.do(ctx, "swift-proxy", "metadata-wrong-signature", http.MethodGet, strings.Replace(address, "temp_url_sig=", "temp_url_sig=0", 1),
		nil, "")
	return err
}

// messages records the polling of a queue, until it is empty.
func (r *recorder) messages(ctx context.Context, l *lab.Lab, m map[string]server) error {
	z := m["zaqar"].Collect["zaqar"]
	token, project, err := r.token(ctx, "token-zaqar", z)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		res, err := r.do(ctx, "zaqar-server", fmt.Sprintf("pop-%d", n), http.MethodDelete,
			fmt.Sprintf("%s/v2/queues/%v/messages?pop=1", l.Endpoint("messaging"), z["queue_id"]), zaqarHeader(token, project), "")
		if err != nil || n == 10 || !strings.Contains(res.Body, `"body"`) {
			return err
		}
	}
}

func zaqarHeader(token, project string) map[string]string {
	return map[string]string{"X-Auth-Token": token, "X-Project-ID": project, "Client-ID": "6f9d1a52-3a8c-4b0e-9a57-62d5f2b7c0de",
		"Content-Type": "application/json"}
}

const result = `{"deploy_stdout": "hello world\n", "deploy_stderr": "", "deploy_status_code": 0, "answer": "42\n"}`

// signals records the ways to signal the result of a deployment.
func (r *recorder) signals(ctx context.Context, l *lab.Lab, m map[string]server) error {
	jsonType := map[string]string{"Content-Type": "application/json"}
	cfn := m["cfn"]
	address := cfn.input("CFN_SIGNAL", "deploy_signal_id")
	if _, err := r.do(ctx, "heat-api-cfn", "signal", cfn.input("CFN_SIGNAL", "deploy_signal_verb"), address, jsonType, result); err != nil {
		return err
	}
	if _, err := r.do(ctx, "heat-api-cfn", "signal-wrong-signature", http.MethodPost, strings.Replace(address, "Signature=", "Signature=0", 1),
		jsonType, result); err != nil {
		return err
	}
	temp := m["temp"]
	if _, err := r.do(ctx, "swift-proxy", "signal", temp.input("TEMP_URL_SIGNAL", "deploy_signal_verb"),
		temp.input("TEMP_URL_SIGNAL", "deploy_signal_id"), nil, result); err != nil {
		return err
	}
	login := func(s server, transport string) map[string]any {
		out := map[string]any{}
		for _, name := range []string{"user_id", "password", "project_id", "auth_url"} {
			out[name] = s.input(transport, "deploy_"+name)
		}
		return out
	}
	token, project, err := r.token(ctx, "token-heat-signal", login(m["heat"], "HEAT_SIGNAL"))
	if err != nil {
		return err
	}
	if _, err := r.do(ctx, "heat-api", "signal", http.MethodPost, fmt.Sprintf("%s/v1/%s/stacks/%s/resources/%s/signal", l.HeatURL(), project,
		m["heat"].input("HEAT_SIGNAL", "deploy_stack_id"), m["heat"].input("HEAT_SIGNAL", "deploy_resource_name")),
		map[string]string{"X-Auth-Token": token, "Content-Type": "application/json"}, result); err != nil {
		return err
	}
	if token, project, err = r.token(ctx, "token-zaqar-signal", login(m["zaqar"], "ZAQAR_SIGNAL")); err != nil {
		return err
	}
	_, err = r.do(ctx, "zaqar-server", "signal", http.MethodPost, fmt.Sprintf("%s/v2/queues/%s/messages", l.Endpoint("messaging"),
		m["zaqar"].input("ZAQAR_SIGNAL", "deploy_queue_id")), zaqarHeader(token, project), `{"messages": [{"ttl": 600, "body": `+result+`}]}`)
	return err
}

// handles records signals to wait handles.
func (r *recorder) handles(ctx context.Context, l *lab.Lab, _ map[string]server) error {
	s, err := l.Heat.Show(ctx, "recorded")
	if err != nil {
		return err
	}
	const up = `{"status": "SUCCESS", "reason": "booted", "data": "up", "id": "1"}`
	header := map[string]string{"Content-Type": "application/json", "X-Auth-Token": fmt.Sprint(s.Outputs()["token"])}
	if _, err := r.do(ctx, "heat-api", "handle", http.MethodPost, fmt.Sprint(s.Outputs()["endpoint"]), header, up); err != nil {
		return err
	}
	var signal struct {
		URL string `json:"alarm_url"`
	}
	if err := json.Unmarshal([]byte(fmt.Sprint(s.Outputs()["cfn"])), &signal); err != nil || signal.URL == "" {
		return fmt.Errorf("the attribute signal of a wait handle is %v: %w", s.Outputs()["cfn"], err)
	}
	_, err = r.do(ctx, "heat-api-cfn", "handle", http.MethodPut, signal.URL, map[string]string{"Content-Type": "application/json"}, up)
	return err
}

// token signs in as a stack user.
func (r *recorder) token(ctx context.Context, name string, login map[string]any) (token, project string, err error) {
	body := fmt.Sprintf(`{"auth": {"identity": {"methods": ["password"], "password": {"user": {"id": %q, "password": %q}}}, `+
		`"scope": {"project": {"id": %q}}}}`, login["user_id"], login["password"], login["project_id"])
	address := strings.TrimSuffix(fmt.Sprint(login["auth_url"]), "/")
	if !strings.HasSuffix(address, "/v3") {
		address += "/v3"
	}
	res, err := r.do(ctx, "keystone", name, http.MethodPost, address+"/auth/tokens", map[string]string{"Content-Type": "application/json"}, body)
	if err != nil {
		return "", "", err
	}
	return res.Headers["X-Subject-Token"], fmt.Sprint(login["project_id"]), nil
}

// do sends a request and records it with its response.
func (r *recorder) do(ctx context.Context, service, name, method, address string, header map[string]string, body string) (*message, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, name, err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req) // follow no redirects
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, name, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", service, name, err)
	}
	e := exchange{Service: service, Version: r.versions[service], Request: message{Method: method, Path: req.URL.RequestURI(), Headers: header,
		Body: body}, Response: message{Status: res.StatusCode, Headers: map[string]string{}, Body: string(b)}}
	for k, v := range res.Header {
		e.Response.Headers[k] = strings.Join(v, ", ")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(r.dir, service), 0o755); err != nil {
		return nil, err
	}
	log.Printf("%-14s %-24s %s %d", service, name, method, res.StatusCode)
	return &e.Response, os.WriteFile(filepath.Join(r.dir, service, name+".json"), out.Bytes(), 0o644)
}
