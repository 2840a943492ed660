//go:build linux

package lab

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// startEC2Proxy forwards the requests of heat-api-cfn to keystone about EC2 signatures. Debian 12's keystone 22.0.2
// requires a service's token for these requests, and heat 19 sends none; the proxy adds heat's token.
func (l *Lab) startEC2Proxy() error {
	ln, err := net.Listen("tcp", l.hostPort(l.ports.ec2))
	if err != nil {
		return err
	}
	admin := &keystone{base: l.url(l.ports.keystone), user: "heat", domain: "default", password: heatPassword, project: "service"}
	l.ec2 = &http.Server{ReadHeaderTimeout: 30 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		res, err := admin.raw(r.Context(), r.Method, r.URL.RequestURI(), body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		for _, h := range []string{"X-Subject-Token", "Content-Type"} {
			if v := res.Header.Get(h); v != "" {
				w.Header().Set(h, v)
			}
		}
		w.WriteHeader(res.StatusCode)
		io.Copy(w, res.Body) // the client may have disconnected
	})}
	l.ec2Done = make(chan struct{})
	go func() {
		defer close(l.ec2Done)
		if err := l.ec2.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			l.opts.Logf("lab: the ec2token proxy ended: %v", err)
		}
	}()
	return nil
}

func (l *Lab) stopEC2Proxy() {
	if l.ec2 == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if l.ec2.Shutdown(ctx) != nil {
		l.ec2.Close()
	}
	<-l.ec2Done
}
