package kit

import "testing"

// As kube-apiserver 1.30.14 ended, shortened.
const ended = `fatal error: concurrent map read and map write

goroutine 571176 [running]:
internal/runtime/maps.fatal({0x46be884?, 0x42458a?})
	runtime/panic.go:1181 +0x18
k8s.io/apiserver/pkg/cel.(*DeclTypeProvider).FindFieldType(0x527f1eb63c0, {0x4696855, 0x14}, {0x52809536458, 0x6})
	k8s.io/apiserver@v0.30.14/pkg/cel/types.go:454 +0x57

goroutine 1 [chan receive, 7 minutes]:
`

func TestAnEndOfTheServerThatIsKnown(t *testing.T) {
	for words, want := range map[string]bool{
		ended:                                true,
		"":                                   false,
		"fatal error: concurrent map writes": false,
		"fatal error: concurrent map writes\n\ngoroutine 5 [running]:\nk8s.io/apiserver/pkg/admission/plugin/cel.(*CompositionEnv).AddField(0x5)\n":                                            true,
		"fatal error: concurrent map writes\n\ngoroutine 5 [running]:\nk8s.io/apiserver/pkg/audit.Add(0x5)\n\ngoroutine 6:\nk8s.io/apiserver/pkg/cel.(*DeclTypeProvider).FindFieldType(0x5)\n": false,
		"panic: nil\n\ngoroutine 5 [running]:\nk8s.io/apiserver/pkg/cel.(*DeclTypeProvider).FindFieldType(0x5)\n":                                                                              false,
	} {
		if knownEnd(words) != want {
			t.Errorf("%q: %v", words, !want)
		}
	}
}
