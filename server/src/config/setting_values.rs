//! The settings in force, by name, without secrets.

use serde_json::{Map, Value, json};

use super::ServeSettings;

/// Stands for a secret.
const HIDDEN_SECRET: &str = "(set)";

impl ServeSettings {
    /// Each setting by its name in the file, with its value as written there; empty: not set.
    #[must_use]
    pub fn setting_values(&self) -> Vec<(String, String)> {
        let secret = |text: &str| if text.is_empty() { "" } else { HIDDEN_SECRET };
        let service = self.service.as_ref();
        let mut values = Vec::new();
        flatten("", &self.values(), &mut values);
        values.push((
            "service.user".to_owned(),
            service.map_or_else(String::new, |account| account.user.clone()),
        ));
        let password = service.map_or("", |account| secret(&account.password));
        values.push(("service.password".to_owned(), password.to_owned()));
        values.push((
            "admin.token".to_owned(),
            secret(&self.admin.token).to_owned(),
        ));
        values.sort();
        values
    }

    fn values(&self) -> Value {
        let named = |name: &str, value: Value| (name.to_owned(), value);
        let definitions = self.definitions.iter();
        let definitions = definitions.map(|it| named(&it.name, json!(it)));
        let feeds = self.feeds.iter().map(|it| named(&it.name, json!(it)));
        let listeners = self.listeners.iter();
        let listeners = listeners.map(|it| named(&it.listen, json!({ "role": it.role })));
        let binlog = &self.requested_limits;
        json!({
            "listen": self.listen,
            "socket": self.socket,
            "upstream": self.upstream,
            "failover": self.failover,
            "listener": listeners.collect::<Map<_, _>>(),
            "accelerate": self.accelerate,
            "threads": self.threads,
            "log": self.log,
            "proxy_protocol": self.proxy_protocol,
            "tls": self.tls,
            "upstream_tls": self.upstream_tls,
            "redirect_url": self.redirect_url,
            "compression": self.compression,
            "limits": self.limits,
            "memory": self.memory,
            "index": {
                "memory_bytes": binlog.memory_bytes,
                "preload": binlog.preload,
                "wait_ms": binlog.wait_ms,
            },
            "rows": self.rows,
            "freshness": self.freshness,
            "binlog": {
                "transaction_rows": binlog.transaction_rows,
                "event_bytes": binlog.event_bytes,
                "data_nodes": binlog.data_nodes,
            },
            "feeds": self.narrow,
            "privileges": self.privileges,
            "shadow": { "rate": self.shadow.rate },
            "admin": { "listen": self.admin.address().unwrap_or_default(), "show": self.admin.show },
            "takeover": self.takeover,
            "definition": definitions.collect::<Map<_, _>>(),
            "feed": feeds.collect::<Map<_, _>>(),
        })
    }
}

fn flatten(name: &str, value: &Value, told: &mut Vec<(String, String)>) {
    let Value::Object(values) = value else {
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        return told.push((name.to_owned(), text));
    };
    for (key, value) in values {
        let name = match name {
            "" => key.clone(),
            name => format!("{name}.{key}"),
        };
        flatten(&name, value, told);
    }
}
