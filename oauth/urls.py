"""The addresses of OAuth."""

from django.urls import path

from oauth import views

app_name = "oauth"
urlpatterns = [
    path("oauth/authorize", views.AuthorizeView.as_view(), name="authorize"),
    path("oauth/token", views.TokenView.as_view(), name="token"),
    path("oauth/revoke", views.RevokeView.as_view(), name="revoke"),
    path(".well-known/oauth-authorization-server", views.authorization_server, name="authorization-server"),
    path(".well-known/oauth-protected-resource/mcp", views.protected_resource, name="protected-resource"),
    # For clients that do not know the path of what they ask about.
    path(".well-known/oauth-protected-resource", views.protected_resource),
]
