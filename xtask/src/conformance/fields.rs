//! The fields of an instance in Eureka's JSON, and their types. Spring's decoder rejects the whole registry for one
//! field too many, so the set is exact.

use serde_json::Value;

const REQUIRED: &[&str] = &[
    "instanceId",
    "hostName",
    "app",
    "ipAddr",
    "status",
    "overriddenStatus",
    "port",
    "securePort",
    "countryId",
    "dataCenterInfo",
    "leaseInfo",
    "metadata",
    "homePageUrl",
    "statusPageUrl",
    "healthCheckUrl",
    "vipAddress",
    "secureVipAddress",
    "isCoordinatingDiscoveryServer",
    "lastUpdatedTimestamp",
    "lastDirtyTimestamp",
    "actionType",
];

const OPTIONAL: &[&str] = &["sid", "appGroupName", "secureHealthCheckUrl", "asgName"];

const LEASE: &[&str] = &[
    "renewalIntervalInSecs",
    "durationInSecs",
    "registrationTimestamp",
    "lastRenewalTimestamp",
    "evictionTimestamp",
    "serviceUpTimestamp",
];

/// Whether a full instance, registered with every usual field, has exactly the fields it should.
pub(crate) fn exact(instance: &Value) -> Result<(), String> {
    keys("the instance", instance, REQUIRED, OPTIONAL)?;
    keys("leaseInfo", &instance["leaseInfo"], LEASE, &[])?;
    keys(
        "dataCenterInfo",
        &instance["dataCenterInfo"],
        &["@class", "name"],
        &[],
    )?;
    for port in ["port", "securePort"] {
        keys(port, &instance[port], &["$", "@enabled"], &[])?;
    }
    Ok(())
}

/// Whether the values have the types that Java's have, its mixture of numbers and strings included.
pub(crate) fn types(instance: &Value) -> Result<(), String> {
    let strings = [
        "/instanceId",
        "/overriddenStatus",
        "/port/@enabled",
        "/securePort/@enabled",
        "/dataCenterInfo/@class",
        "/metadata/kit",
        "/isCoordinatingDiscoveryServer",
        "/lastUpdatedTimestamp",
        "/lastDirtyTimestamp",
        "/actionType",
    ];
    let numbers = ["/port/$", "/securePort/$", "/countryId"].map(str::to_owned);
    let lease = LEASE.iter().map(|name| format!("/leaseInfo/{name}"));
    for path in strings {
        wants(
            "a string",
            path,
            instance.pointer(path).is_some_and(Value::is_string),
        )?;
    }
    for path in numbers.into_iter().chain(lease) {
        wants(
            "a number",
            &path,
            instance.pointer(&path).is_some_and(Value::is_number),
        )?;
    }
    Ok(())
}

fn wants(kind: &str, path: &str, is: bool) -> Result<(), String> {
    if is {
        Ok(())
    } else {
        Err(format!("{path} is not {kind}"))
    }
}

fn keys(what: &str, value: &Value, required: &[&str], optional: &[&str]) -> Result<(), String> {
    let Value::Object(object) = value else {
        return Err(format!("{what} is no object"));
    };
    for key in object.keys() {
        if !required.contains(&key.as_str()) && !optional.contains(&key.as_str()) {
            return Err(format!("{what} has a field that Eureka has not: {key}"));
        }
    }
    match required.iter().find(|key| !object.contains_key(**key)) {
        Some(missing) => Err(format!("{what} lacks {missing}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_field_too_many_or_too_few_is_named() {
        assert!(keys("x", &json!({"a": 1}), &["a"], &[]).is_ok());
        assert_eq!(
            keys("x", &json!({"a": 1, "b": 1}), &["a"], &[]).unwrap_err(),
            "x has a field that Eureka has not: b"
        );
        assert_eq!(keys("x", &json!({}), &["a"], &["b"]).unwrap_err(), "x lacks a");
        assert!(keys("x", &json!([]), &[], &[]).is_err());
    }
}
