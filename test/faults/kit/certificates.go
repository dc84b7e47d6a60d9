package kit

import "encoding/pem"

// Secrets of the extender, and when its authorities were written.
const (
	ServerSecret    = "quartermaster-extender"
	CallersSecret   = "quartermaster-extender-client"
	AuthoritySecret = "quartermaster-extender-authority"
	SinceAnnotation = "state.quartermaster.io/authorities-since"
)

// CountCertificates in a file of them.
func CountCertificates(text []byte) (count int) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return
		}
		count, text = count+1, rest
	}
}
