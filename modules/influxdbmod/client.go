package influxdbmod

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/python/pyjson"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// maxBody bounds what is read of an answer.
const maxBody = 64 << 20

func clientError(text string) error {
	return &modules.PythonError{Type: "influxdb.exceptions.InfluxDBClientError", Msg: text}
}

// series is a table of a result: a measurement, or a group of it by tags.
type series struct {
	name   string
	tags   *pyobj.Dict
	points []any // of *pyobj.Dict
}

// checkKeywords refuses keyword arguments that the client does not have, and those without effect here.
func checkKeywords(keywords map[string]any) error {
	for name := range keywords {
		switch name {
		case "influxdb_host", "influxdb_port", "influxdb_user", "influxdb_password", "database", "ssl", "verify_ssl", "timeout", "path",
			"retries", "pool_size":
		case "use_udp", "udp_port", "proxies", "cert", "gzip", "session", "headers", "socket_options":
			return modules.Usagef("cannot use the argument %s: it is not supported", name)
		case "host", "port", "username", "password":
			return &modules.TypeError{Msg: "influxdb.client.InfluxDBClient() got multiple values for keyword argument '" + name + "'"}
		default:
			if !strings.HasPrefix(name, "__") {
				return &modules.TypeError{Msg: "InfluxDBClient.__init__() got an unexpected keyword argument '" + name + "'"}
			}
		}
	}
	return nil
}

// ask sends statements and returns the tables that each of them gives.
func ask(ctx context.Context, c *modules.Call, text string, database any) ([][]series, error) {
	kw := c.Keywords
	if err := checkKeywords(kw); err != nil {
		return nil, err
	}
	var said [4]any
	for i, o := range [...]struct {
		name  string
		other any
	}{{"host", "localhost"}, {"port", int64(8086)}, {"user", "root"}, {"password", "root"}} {
		if said[i] = kw["influxdb_"+o.name]; !pytext.Truth(said[i]) {
			v, err := c.Exec(ctx, "config.option", "influxdb."+o.name, o.other)
			if err != nil {
				return nil, err
			}
			said[i] = v
		}
	}
	port, err := modules.ToInt(said[1])
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxResponseHeaderBytes: 1 << 20, DisableKeepAlives: true}
	to := url.URL{Scheme: "http", Host: pytext.Str(said[0]) + ":" + pytext.Str(port), Path: "/query"}
	if kw["ssl"] == true {
		to.Scheme = "https"
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: kw["verify_ssl"] == false}
	}
	if path := kw["path"]; pytext.Truth(path) {
		to.Path = "/" + strings.TrimPrefix(pytext.Str(path), "/") + to.Path
	}
	q := url.Values{"q": {text}}
	if pytext.Truth(database) {
		q.Set("db", pytext.Str(database))
	}
	if v := kw["timeout"]; pytext.Truth(v) {
		seconds, err := modules.ToInt(v)
		if err != nil {
			return nil, err
		}
		within, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
		ctx = within
	}
	// A statement may contain a password, so it must not be in the URL, which servers log.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), strings.NewReader(q.Encode()))
	if err != nil {
		return nil, modules.Errorf("cannot ask InfluxDB: %s", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(pytext.Str(said[2]), pytext.Str(said[3]))
	resp, err := (&http.Client{Transport: transport}).Do(req)
	var body []byte
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	switch {
	case err != nil:
		return nil, &modules.PythonError{Type: "requests.exceptions.ConnectionError", Msg: "cannot ask InfluxDB: " + err.Error()}
	case len(body) > maxBody:
		return nil, modules.Errorf("the answer of InfluxDB is larger than %d bytes", maxBody)
	}
	return answer(resp.StatusCode, body)
}

// answer reads what the server says.
func answer(status int, body []byte) ([][]series, error) {
	v, err := pyjson.ParseObject(body)
	if status != http.StatusOK {
		text := string(body)
		if err == nil {
			text, _ = pyjson.Format(v, pyjson.Options{Indent: -1, ASCII: true, Comma: ",", Colon: ":"}) // it was read as JSON
		}
		if status >= 500 && status < 600 {
			return nil, &modules.PythonError{Type: "influxdb.exceptions.InfluxDBServerError", Msg: text}
		}
		return nil, clientError(pytext.Str(int64(status)) + ": " + text)
	}
	if err != nil {
		return nil, &modules.PythonError{Type: "requests.exceptions.JSONDecodeError", Msg: err.Error()}
	}
	var out [][]series
	for _, r := range items(v, "results") {
		if d, ok := r.(*pyobj.Dict); ok {
			if e, ok := d.Get("error"); ok {
				return nil, clientError(pyobj.Str(e))
			}
		}
		list := []series{}
		for _, s := range items(r, "series") {
			list = append(list, table(s))
		}
		out = append(out, list)
	}
	return out, nil
}

// items returns the list at a key of a dictionary, or nil.
func items(v any, key string) []any {
	if d, ok := v.(*pyobj.Dict); ok {
		if l, ok := d.Value(key).(*pyobj.List); ok {
			return l.Items
		}
	}
	return nil
}

func table(v any) series {
	s := series{name: "results", points: []any{}}
	d, _ := v.(*pyobj.Dict)
	if d == nil {
		return s
	}
	if name, ok := d.Get("name"); ok {
		s.name = pyobj.Str(name)
	}
	s.tags, _ = d.Value("tags").(*pyobj.Dict)
	columns := items(v, "columns")
	for _, row := range items(v, "values") {
		p := &pyobj.Dict{}
		if l, ok := row.(*pyobj.List); ok && len(l.Items) == len(columns) {
			for i, x := range l.Items {
				if columns[i] == "time" {
					x = moment(x)
				}
				_ = p.Set(columns[i], x) // a text
			}
		}
		s.points = append(s.points, p)
	}
	return s
}

// moment returns a time in the format of the Python client.
func moment(v any) any {
	text, _ := v.(string)
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return v
	}
	layout := "2006-01-02T15:04:05"
	if t = t.Round(time.Microsecond); t.Nanosecond() != 0 {
		layout += ".000000"
	}
	return t.Format(layout) + "Z"
}
