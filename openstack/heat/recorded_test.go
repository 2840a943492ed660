package heat

// exchange is a request to a real service and its response, in the form of a file in testdata/pairs/<service>.
type exchange struct {
	Service  string  `json:"service"`
	Version  string  `json:"version"` // of Debian's package
	Request  message `json:"request"`
	Response message `json:"response"`

	at string // the service's host and port
}

type message struct {
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path,omitempty"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}
