package cluster

import (
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Account is a service account of a stage, with its token in a file as the
// kubelet mounts it.
type Account struct {
	Name      string
	TokenFile string

	stage  *Stage
	secret string // the token is good for as long as this Secret exists
}

// Account makes a service account without any permission.
func (s *Stage) Account(name string) *Account {
	s.t.Helper()
	_, err := s.cluster.Admin.CoreV1().ServiceAccounts(s.Namespace).Create(s.t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must("create account", err)
	a := &Account{Name: name, TokenFile: filepath.Join(s.t.TempDir(), "token"), stage: s}
	a.Rotate()
	return a
}

// Grant gives the account a Role in its namespace. It makes two requests.
func (a *Account) Grant(rules []rbacv1.PolicyRule) {
	s := a.stage
	s.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: a.Name}, Rules: rules}
	_, err := s.cluster.Admin.RbacV1().Roles(s.Namespace).Create(s.t.Context(), role, metav1.CreateOptions{})
	s.must("create role", err)
	a.Restore()
}

// Restore gives back what Revoke took.
func (a *Account) Restore() {
	s := a.stage
	s.t.Helper()
	_, err := s.cluster.Admin.RbacV1().RoleBindings(s.Namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.Name, Namespace: s.Namespace}},
	}, metav1.CreateOptions{})
	s.must("create role binding", err)
}

// GrantEverywhere gives the account a ClusterRole. It makes two requests.
func (a *Account) GrantEverywhere(rules []rbacv1.PolicyRule) {
	s := a.stage
	s.t.Helper()
	name := s.Namespace + "-" + a.Name
	_, err := s.cluster.Admin.RbacV1().ClusterRoles().Create(s.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
	}, metav1.CreateOptions{})
	s.must("create cluster role", err)
	_, err = s.cluster.Admin.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: a.Name, Namespace: s.Namespace}},
	}, metav1.CreateOptions{})
	s.must("create cluster role binding", err)
}

// Revoke takes back what Grant gave.
func (a *Account) Revoke() {
	s := a.stage
	s.t.Helper()
	err := s.cluster.Admin.RbacV1().RoleBindings(s.Namespace).Delete(s.t.Context(), a.Name, metav1.DeleteOptions{})
	s.must("delete role binding", err)
}

// Expire makes the token in the file worthless: the server refuses it with the
// same words as one that is too old, after at most the 10 s for which it
// remembers that a token was good. Connections and open watches stay.
func (a *Account) Expire() {
	s := a.stage
	s.t.Helper()
	err := s.cluster.Admin.CoreV1().Secrets(s.Namespace).Delete(s.t.Context(), a.secret, metav1.DeleteOptions{})
	s.must("delete secret", err)
}

// Accepted tells whether the server accepts the token in the file.
func (a *Account) Accepted() bool {
	s := a.stage
	s.t.Helper()
	token, err := os.ReadFile(a.TokenFile)
	s.must("read token", err)
	review, err := s.cluster.Admin.AuthenticationV1().TokenReviews().Create(s.t.Context(),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: string(token)}}, metav1.CreateOptions{})
	s.must("review token", err)
	return review.Status.Authenticated
}

// Rotate puts a new token into the file, as the kubelet does.
func (a *Account) Rotate() {
	s := a.stage
	s.t.Helper()
	secret, err := s.cluster.Admin.CoreV1().Secrets(s.Namespace).Create(s.t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: a.Name + "-"}}, metav1.CreateOptions{})
	s.must("create secret", err)
	a.secret = secret.Name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID,
		},
	}}
	made, err := s.cluster.Admin.CoreV1().ServiceAccounts(s.Namespace).CreateToken(s.t.Context(), a.Name, request, metav1.CreateOptions{})
	s.must("create token", err)
	next := a.TokenFile + ".next"
	s.must("write token", os.WriteFile(next, []byte(made.Status.Token), 0o600))
	s.must("write token", os.Rename(next, a.TokenFile))
}
