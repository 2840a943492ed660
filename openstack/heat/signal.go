package heat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// signaler sends the results of deployments to Heat.
type signaler struct {
	web web
	ks  *keystone
}

// signalTimeout is the time limit for one attempt: a body of 950,000 bytes on a slow link.
const signalTimeout = 60 * time.Second

func newSignaler(ks *keystone) *signaler { return &signaler{web: web{timeout: signalTimeout}, ks: ks} }

// login returns the stack user in a deployment's inputs.
func (d *Deployment) login() Login {
	return Login{AuthURL: d.Input("deploy_auth_url"), UserID: d.Input("deploy_user_id"), Username: d.Input("deploy_username"),
		UserDomain: d.Input("deploy_domain_id"), Password: d.Input("deploy_password"), ProjectID: d.Input("deploy_project_id"),
		Region: d.Input("deploy_region_name")}
}

// Transport returns how the deployment is signalled: "url" (CFN_SIGNAL and TEMP_URL_SIGNAL), "zaqar", "heat", or ""
// for no signal.
func (d *Deployment) Transport() string {
	switch {
	case d.Input("deploy_signal_transport") == "NO_SIGNAL":
		return ""
	case d.Input("deploy_signal_id") != "":
		return "url"
	case d.Input("deploy_queue_id") != "":
		return "zaqar"
	case d.Input("deploy_auth_url") != "":
		return "heat"
	}
	return ""
}

// send makes one attempt. It returns nil if the service has accepted the result.
func (s *signaler) send(ctx context.Context, d *Deployment, body []byte) error {
	switch d.Transport() {
	case "url":
		return s.sendURL(ctx, d.Input("deploy_signal_verb"), d.Input("deploy_signal_id"), body)
	case "zaqar":
		return s.sendQueue(ctx, d.login(), d.Input("deploy_queue_id"), body)
	case "heat":
		l := d.login()
		_, err := s.ks.call(ctx, &s.web, l, "orchestration", request{method: http.MethodPost, body: body, header: jsonHeader()},
			func(endpoint string) string {
				return resourceURL(endpoint, d.Input("deploy_stack_id"), d.Input("deploy_resource_name")) + "/signal"
			})
		return err
	}
	return nil
}

func jsonHeader() map[string]string { return map[string]string{"Content-Type": "application/json"} }

// sendURL sends to a signed URL of the CFN API or of Swift. verb is POST unless it is PUT.
func (s *signaler) sendURL(ctx context.Context, verb, address string, body []byte) error {
	if verb != http.MethodPut {
		verb = http.MethodPost
	}
	header := jsonHeader()
	if strings.Contains(address, "temp_url_sig=") {
		header = nil // Heat reads the object whatever its type
	}
	_, _, err := s.web.do(ctx, request{method: verb, url: address, body: body, header: header})
	return err
}

// messageTTL is how long a signal stays in a queue in seconds, as in heat-config-notify.
const messageTTL = 600

func (s *signaler) sendQueue(ctx context.Context, l Login, queue string, body []byte) error {
	message := []byte(fmt.Sprintf(`{"messages": [{"ttl": %d, "body": `, messageTTL))
	message = append(append(message, body...), "}]}"...)
	_, err := s.ks.call(ctx, &s.web, l, "messaging", request{method: http.MethodPost, body: message, header: zaqarHeader(l)},
		func(endpoint string) string { return queueURL(endpoint, queue) })
	return err
}

// gone reports whether the target of a signal no longer exists.
func gone(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone)
}
