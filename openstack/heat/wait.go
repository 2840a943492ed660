package heat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/shlex"
)

// Handle is the target of a signal for a wait condition or a Swift signal, in one of seven forms.
type Handle struct {
	// Kind is "token", "url" (CFN_SIGNAL), "tempurl" (Swift), "heat", "zaqar", "salt" or "none".
	Kind string
	// Tag is the tag of the event for "salt", which goes to the minion's master (OS::Salt::WaitConditionHandle).
	Tag string
	// URL is the URL, and Token the token, for "token", "url" and "tempurl".
	URL, Token string
	// aws marks the URL of an AWS::CloudFormation::WaitConditionHandle, whose signals have other field names.
	aws bool
	// deployment holds the credentials for "heat" and "zaqar" in the form of a deployment's inputs.
	deployment *Deployment
}

// ParseHandle parses a handle: the text or map of {get_attr: [handle, signal]}, the URL of {get_resource: handle}, or
// the command of {get_attr: [handle, curl_cli]}.
func ParseHandle(v any) (Handle, error) {
	switch v := v.(type) {
	case nil:
		return Handle{Kind: "none"}, nil
	case map[string]any:
		return handleOf(v)
	case string:
		text := strings.TrimSpace(v)
		switch {
		case text == "" || text == "NO_SIGNAL":
			return Handle{Kind: "none"}, nil
		case strings.HasPrefix(text, "{"):
			m, err := parseMap([]byte(text), "the handle")
			if err != nil {
				return Handle{}, err
			}
			return handleOf(m)
		case strings.HasPrefix(text, "curl "):
			return curlHandle(text)
		case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
			return urlHandle(text), nil
		}
	}
	return Handle{}, errors.New("the handle must be an address, a curl command, or the attribute signal of a handle")
}

func urlHandle(address string) Handle {
	if strings.Contains(address, "temp_url_sig=") {
		return Handle{Kind: "tempurl", URL: address}
	}
	return Handle{Kind: "url", URL: address, aws: strings.Contains(address, "/waitcondition/")}
}

// curlHandle parses the curl command that Heat provides for TOKEN_SIGNAL and for Swift.
func curlHandle(command string) (Handle, error) {
	words, err := shlex.Split(command)
	if err != nil {
		return Handle{}, fmt.Errorf("cannot read the curl command: %w", err)
	}
	var h Handle
	for i, word := range words {
		if name, value, ok := strings.Cut(word, ":"); ok && strings.EqualFold(name, "X-Auth-Token") {
			h.Token = strings.TrimSpace(value)
		}
		if i > 0 && strings.Contains(word, "://") {
			h.URL = word
		}
	}
	switch {
	case h.URL == "":
		return h, errors.New("the curl command has no address")
	case h.Token != "":
		h.Kind = "token"
	default:
		h = urlHandle(h.URL)
	}
	return h, nil
}

func handleOf(m map[string]any) (Handle, error) {
	get := func(name string) string { s, _ := m[name].(string); return s }
	switch {
	case get("signal_transport") == "SALT_SIGNAL" && get("tag") != "":
		return Handle{Kind: "salt", Tag: get("tag")}, nil
	case get("curl_cli") != "":
		return curlHandle(get("curl_cli"))
	case get("endpoint") != "" && get("token") != "":
		return Handle{Kind: "token", URL: get("endpoint"), Token: get("token")}, nil
	case get("alarm_url") != "" && get("auth_url") == "":
		h := urlHandle(get("alarm_url"))
		h.aws = false // only handles of OS::Heat have the attribute
		return h, nil
	case get("auth_url") != "":
		d := &Deployment{}
		for from, to := range map[string]string{"auth_url": "deploy_auth_url", "username": "deploy_username", "user_id": "deploy_user_id",
			"password": "deploy_password", "project_id": "deploy_project_id", "domain_id": "deploy_domain_id",
			"region_name": "deploy_region_name", "queue_id": "deploy_queue_id", "stack_id": "deploy_stack_id",
			"resource_name": "deploy_resource_name"} {
			if s := get(from); s != "" {
				d.Inputs = append(d.Inputs, Input{Name: to, Value: s})
			}
		}
		kind := "heat"
		if get("queue_id") != "" {
			kind = "zaqar"
		}
		return Handle{Kind: kind, URL: get("alarm_url"), deployment: d}, nil
	case len(m) == 0:
		return Handle{Kind: "none"}, nil
	}
	return Handle{}, errors.New("the handle has neither an address nor credentials")
}

// WaitSignal is the content of a signal for a wait condition. Heat sets empty fields.
type WaitSignal struct {
	Status, Reason, ID string
	Data               any
}

// data returns the signal in the form for an event's data.
func (w WaitSignal) data() (any, error) { return pyjson.Parse(w.body(false)) }

// body returns the signal as JSON. For AWS::CloudFormation::WaitConditionHandle (cfn) the fields have other names,
// and all four are required.
func (w WaitSignal) body(cfn bool) []byte {
	status := w.Status
	if status == "" {
		status = "SUCCESS"
	}
	if cfn {
		m := map[string]any{"Status": status, "Reason": w.Reason, "Data": w.Data, "UniqueId": w.ID}
		if w.Data == nil {
			m["Data"] = ""
		}
		if w.ID == "" {
			m["UniqueId"] = "00000"
		}
		return encode(m)
	}
	m := map[string]any{"status": status}
	if w.Reason != "" {
		m["reason"] = w.Reason
	}
	if w.ID != "" {
		m["id"] = w.ID
	}
	if w.Data != nil {
		m["data"] = w.Data
	}
	return encode(m)
}

// signal sends a signal to a handle once.
func (s *signaler) signal(ctx context.Context, h Handle, w WaitSignal) error {
	switch h.Kind {
	case "none":
		return nil
	case "token":
		header := jsonHeader()
		header["X-Auth-Token"] = h.Token
		_, _, err := s.web.do(ctx, request{method: http.MethodPost, url: h.URL, body: w.body(false), header: header})
		return err
	case "url", "tempurl":
		// URLs of wait conditions and of Swift require PUT; those of other resources accept only POST.
		verb := http.MethodPut
		if strings.Contains(plainURL(h.URL), "/v1/signal/") {
			verb = http.MethodPost
		}
		return s.sendURL(ctx, verb, h.URL, w.body(h.aws))
	case "zaqar":
		return s.sendQueue(ctx, h.deployment.login(), h.deployment.Input("deploy_queue_id"), w.body(false))
	}
	l := h.deployment.login()
	_, err := s.ks.call(ctx, &s.web, l, "orchestration", request{method: http.MethodPost, body: w.body(false), header: jsonHeader()},
		func(endpoint string) string {
			if h.URL != "" {
				return h.URL
			}
			return resourceURL(endpoint, h.deployment.Input("deploy_stack_id"), h.deployment.Input("deploy_resource_name")) + "/signal"
		})
	return err
}

// jsonOrText returns a text that contains a JSON map or list as its value, and other values unchanged.
func jsonOrText(v any) any {
	s, ok := v.(string)
	if !ok || !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return v
	}
	if parsed, err := pyjson.Parse([]byte(s)); err == nil {
		return parsed
	}
	return v
}
