//! How long answers took, and what a share of them did not exceed.

/// What this share of sorted delays did not exceed; 0 if there are none.
pub(super) fn quantile(sorted: &[u32], share: f64) -> u32 {
    let last = sorted.len().saturating_sub(1);
    let position = (last as f64 * share).ceil() as usize;
    sorted.get(position).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_up() {
        let delays = [10, 20, 30, 40];
        let quantiles = [0.0, 0.3, 0.5, 0.99, 1.0].map(|share| quantile(&delays, share));
        assert_eq!(quantiles, [10, 20, 30, 40, 40]);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
