package kit

import (
	"io"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Exchange is a request to an API server and what it answers: the code, the warnings as they come, and the body.
func Exchange(client *http.Client, request *http.Request) (code int, warnings []string, body []byte, err error) {
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return 0, nil, nil, err
	}
	headers, _ := utilnet.ParseWarningHeaders(answer.Header["Warning"])
	for _, header := range headers {
		warnings = append(warnings, header.Text)
	}
	return answer.StatusCode, warnings, body, nil
}
